"""Forecasts: how right they are, and what they cost."""
