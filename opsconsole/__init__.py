"""The console around the scheduler."""
