"""Measured figures, each with its command: `python -m benchmarks` runs all."""
