"""Which plans are open in this console, told to the others of the same store; and which are open there."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from opsconsole.errors import StoreError
from opsconsole.ports import ClusterStore
from opsconsole.presenting.view import OpenPlan

LOOK_S = 1.0
RENEW_S = 10.0


@dataclass
class Presence:
    """`changed` is called when others have opened or left a plan. A store that fails is said by those who follow it."""

    store: ClusterStore
    changed: Callable[[], None]
    others: Sequence[OpenPlan] = ()
    console: str = field(default_factory=lambda: uuid.uuid4().hex)
    _mine: OpenPlan | None = None
    _told_at: float = 0.0

    def tell(self, plan: OpenPlan | None) -> None:
        """At once; None takes back what was told."""
        if plan is None and self._mine is None:
            return
        self._mine, self._told_at = plan, time.monotonic()
        text = "" if plan is None else msgspec.json.encode(plan).decode()
        with suppress(StoreError):
            self.store.put_presence(self.console, text)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if self._mine is not None and time.monotonic() - self._told_at > RENEW_S:
                self.tell(self._mine)
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        found = open_elsewhere(self.store, self.console)
        if found != list(self.others):
            self.others = found
            self.changed()


def open_elsewhere(store: ClusterStore, console: str = "") -> list[OpenPlan]:
    """Plans that are open in other consoles; none where the store cannot say."""
    found: list[OpenPlan] = []
    with suppress(StoreError):
        for text in store.presences(console):
            with suppress(msgspec.MsgspecError):  # of another version
                found.append(msgspec.json.decode(text, type=OpenPlan))
    return found


@contextmanager
def telling(store: ClusterStore, plan: OpenPlan) -> Iterator[None]:
    """While somebody is asked, others hear of the plan."""
    mine = Presence(store, lambda: None)
    mine.tell(plan)
    try:
        yield
    finally:
        mine.tell(None)
