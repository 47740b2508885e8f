"""What can go wrong with a store, as a person reads it."""

from __future__ import annotations

from opsconsole.errors import OpsConsoleError


class StoreError(OpsConsoleError):
    """The store cannot be used at all: wrong place, newer version, damaged."""


class StoreUnavailable(StoreError):
    """It cannot be written now: full, locked, gone. The leader stops acting and tries again."""


class LostLease(StoreError):
    """Another leader has a higher epoch: this process may not act any more."""
