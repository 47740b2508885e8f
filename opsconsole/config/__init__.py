"""Text to typed values: inventory, snapshot file, submissions. All errors of a file at once, each with its line."""
