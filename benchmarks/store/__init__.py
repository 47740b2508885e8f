"""The store's figures: `python -m benchmarks.store.restart`, `python -m benchmarks.store.commits`."""
