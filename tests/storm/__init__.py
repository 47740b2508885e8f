"""Whole worlds with faults, by the hundred: `python -m tests.storm --seeds N [--hours H] [--json]`."""
