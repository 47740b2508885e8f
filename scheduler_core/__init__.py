"""The scheduler: pure, synchronous, deterministic. Standard library only."""
