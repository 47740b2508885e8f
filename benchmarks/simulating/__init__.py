"""Replays of logs by the whole command."""
