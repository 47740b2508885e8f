"""The small disk of tests/disks.py as a fixture."""

from tests.disks import small_disk

__all__ = ["small_disk"]
