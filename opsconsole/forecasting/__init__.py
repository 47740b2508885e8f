"""Forecasts from the live state: what comes of it as it is, and what would come of it with a draft's changes."""
