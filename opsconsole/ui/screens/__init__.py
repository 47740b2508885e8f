"""The screens. Each has its own .tcss beside it."""
