"""What the console costs: the first frame, long tables, a picture after another."""
