"""Benchmarks of the scheduler core. Each module runs by itself: `python -m benchmarks.core.NAME`."""
