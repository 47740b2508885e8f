"""The servers of tests/sshd.py as fixtures."""

from tests.sshd import hang, sshd_factory

__all__ = ["hang", "sshd_factory"]
