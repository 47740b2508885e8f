"""What can go wrong with a store. Defined beside the other errors, so that nobody needs the store to know them."""

from opsconsole.errors import LostLease, StoreError, StoreUnavailable

__all__ = ["LostLease", "StoreError", "StoreUnavailable"]
