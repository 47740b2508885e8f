"""Observations, decisions and commands to JSON and back, by the name of their class."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from opsconsole.errors import StoreError
from scheduler_core.commands import Command
from scheduler_core.decisions import Decision
from scheduler_core.observations import Observation

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for union in (Observation, Decision, Command) for kind in get_args(union)
}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {name: msgspec.json.Decoder(kind) for name, kind in KINDS.items()}
_ENCODER = msgspec.json.Encoder()


def encode(event: Any) -> tuple[str, bytes]:
    """Kind and body of a row."""
    return type(event).__name__, _ENCODER.encode(event)


def decode(kind: str, body: bytes) -> Any:
    """The event of a row. Raises StoreError for a kind that this version does not know."""
    try:
        return _DECODERS[kind].decode(body)
    except KeyError:
        raise StoreError(
            f"the journal holds a {kind!r}, which this version does not know", advice="use the newer opsconsole"
        ) from None
    except msgspec.MsgspecError as error:
        raise StoreError(f"the journal holds a damaged {kind!r}: {error}", advice="restore it from a copy") from error
