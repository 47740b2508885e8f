"""Slurm's two fair-share factors, for a tree of accounts with users at its leaves: classic, and fair tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from scheduler_core.shares.amounts import INFINITY, Exact, Ratio
from scheduler_core.shares.trees import TOP, by_id, children, path


@dataclass(frozen=True, slots=True)
class Association:
    """An account, or a user in one. `shares` None is Fairshare=parent; usage in any one unit, of its own."""

    id: str
    parent: str = TOP
    shares: Exact | None = 1
    usage: Exact = 0
    user: bool = False


# -- classic -------------------------------------------------------------------------------------------------------


def normalised_shares(associations: Iterable[Association]) -> dict[str, Fraction]:
    """The product, from the top down, of shares ÷ all shares of the siblings; Fairshare=parent has its parent's."""
    tree = by_id(associations)
    parts = _parts_of_level(tree)
    found: dict[str, Fraction] = {}
    for name in tree:
        found[name] = Fraction(1)
        for above in path(tree, name):
            found[name] *= 1 if tree[above].shares is None else parts[above]
    return found


def effective_usage(associations: Iterable[Association]) -> dict[str, Fraction]:
    """Usage with a part of what the siblings used: own + (the parent's effective − own) × shares ÷ the level's shares.

    At the top it is what was used. Fairshare=parent has its parent's.
    """
    tree = by_id(associations)
    used, parts, found = _usage(tree), _parts_of_level(tree), dict[str, Fraction]()
    below = children(tree)

    def down(parent: str) -> None:
        for name in below[parent]:
            own = used[name]
            if parent == TOP:
                found[name] = own
            elif tree[name].shares is None:
                found[name] = found[parent]
            else:
                found[name] = own + (found[parent] - own) * parts[name]
            down(name)

    down(TOP)
    return found


def classic_fairshare(associations: Iterable[Association]) -> dict[str, float]:
    """2^(−effective usage ÷ normalised shares): 1 for the untouched, 0 without shares. All usage together is 1."""
    everyone = list(associations)
    shares, usage = normalised_shares(everyone), effective_usage(everyone)
    return {name: 2.0 ** -float(usage[name] / share) if share else 0.0 for name, share in shares.items()}


# -- fair tree -----------------------------------------------------------------------------------------------------


def level_fairshare(associations: Iterable[Association]) -> dict[str, Ratio]:
    """How far each is behind its siblings: (shares ÷ the level's shares) ÷ (usage ÷ the level's usage).

    0 without shares, INFINITY where nothing was used, and for users with Fairshare=parent, who stand first. Accounts
    with Fairshare=parent have none: those in them count as siblings of the account's own siblings.
    """
    tree = by_id(associations)
    used, levels = _usage(tree), _levels(tree)
    found: dict[str, Ratio] = {}
    for parent, level in levels.items():
        shares = sum(tree[name].shares or 0 for name in level)
        spent = used[parent] if parent != TOP else sum(used[name] for name, a in tree.items() if a.parent not in tree)
        found |= {name: _level_fs(tree[name], shares, used[name], spent) for name in level}
    return {name: found[name] for name in tree if name in found}


def fair_tree(associations: Iterable[Association]) -> dict[str, Fraction]:
    """Each user's rank ÷ number of users: 1 is best. Depth first by level fair share, all of a branch before the next.

    Users that tie share a rank; accounts that tie are ranked as one; a user that ties with an account has the rank of
    the account's first user.
    """
    tree = by_id(associations)
    users = sum(association.user for association in tree.values())
    return {user: Fraction(rank, users) for user, rank in _Ranking(tree, users).ranks.items()}


class _Ranking:
    def __init__(self, tree: Mapping[str, Association], users: int) -> None:
        self._tree, self._levels = tree, _levels(dict(tree))
        self._fs = level_fairshare(tree.values())
        self._rank = self._left = users  # the rank given last, and the next that nobody shares
        self.ranks: dict[str, int] = {}
        self._visit(self._levels[TOP], tied=False)

    def _visit(self, level: list[str], tied: bool) -> None:
        """`tied`: the first here shares the rank given last."""
        for value in sorted({self._fs[name] for name in level}, reverse=True):
            equals = [name for name in level if self._fs[name] == value]
            for user in (name for name in equals if self._tree[name].user):
                self._rank = self._rank if tied else self._left
                self.ranks[user] = self._rank
                self._left -= 1
                tied = True
            if merged := [kid for name in equals if not self._tree[name].user for kid in self._levels[name]]:
                self._visit(merged, tied)
            tied = False


def _level_fs(association: Association, level_shares: Exact, used: Exact, level_used: Exact) -> Ratio:
    if association.shares is None:
        return INFINITY
    if not association.shares:
        return Fraction(0)
    return Fraction(association.shares * level_used) / (level_shares * used) if used else INFINITY


def _levels(tree: dict[str, Association]) -> dict[str, list[str]]:
    """Who is compared with whom: the members of each account, those of accounts with Fairshare=parent among them."""
    below = children(tree)
    lifted = {name for name, one in tree.items() if one.shares is None and not one.user}

    def members(parent: str) -> list[str]:
        return [m for name in below[parent] for m in (members(name) if name in lifted else [name])]

    return {parent: members(parent) for parent in below if parent not in lifted}


# -- both ----------------------------------------------------------------------------------------------------------


def _usage(tree: Mapping[str, Association]) -> dict[str, Fraction]:
    """Of each with everything below it."""
    found = dict.fromkeys(tree, Fraction(0))
    for name, association in tree.items():
        for above in path(tree, name):
            found[above] += association.usage
    return found


def _parts_of_level(tree: dict[str, Association]) -> dict[str, Fraction]:
    """Shares ÷ all shares of the siblings."""
    parts: dict[str, Fraction] = {}
    for level in children(tree).values():
        together = sum(tree[name].shares or 0 for name in level)
        parts |= {name: Fraction(tree[name].shares or 0) / together if together else Fraction(0) for name in level}
    return parts
