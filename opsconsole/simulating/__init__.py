"""Replays of workload logs on the engine that decides live: what a policy would have made of them."""
