"""Units of the core: instants and spans are integer milliseconds, GPUs are thousandths, weights are millionths."""

from collections.abc import Sequence

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

GPU = 1_000  # thousandths of a GPU: ledgers count GPU-thousandths x milliseconds
WEIGHT = 1_000_000  # a weight of 1
PPM = 1_000_000  # a fraction of 1, in parts per million

GPU_HOUR = GPU * HOUR


def count(number: int, word: str) -> str:
    """`1 host`, `2 hosts`: how every text says an amount."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`: how every text names many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def bits(mask: int) -> tuple[int, ...]:
    """The slots set in a mask of GPUs, lowest first."""
    return tuple(slot for slot in range(mask.bit_length()) if mask >> slot & 1)


def lowest_bits(mask: int, number: int) -> int:
    """The lowest `number` bits of a mask."""
    taken = 0
    for _ in range(number):
        bit = mask & -mask
        taken |= bit
        mask ^= bit
    return taken
