"""Ledgers (rules 2 to 4): exact integrals of GPUs held, per budget, over a sliding window."""

from __future__ import annotations


class Ledgers:
    """Filled in by the usage work."""
