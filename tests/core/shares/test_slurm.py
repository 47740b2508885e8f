"""Slurm's classic fair-share factor and fair tree."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.shares.amounts import INFINITY, Exact, Ratio
from scheduler_core.shares.slurm import (
    Association,
    classic_fairshare,
    effective_usage,
    fair_tree,
    level_fairshare,
    normalised_shares,
)


def account(name: str, parent: str = "", shares: int | None = 1) -> Association:
    return Association(name, parent, shares)


def user(name: str, parent: str = "", usage: Exact = 0, shares: int | None = 1) -> Association:
    return Association(name, parent, shares, usage, user=True)


# -- classic: physics has 3 of 4 shares and used half of everything, ada all of it ---------------------------------

LAB = [
    account("physics", shares=3),
    user("ada", "physics", Fraction(1, 2)),
    user("bo", "physics"),
    account("biology"),
    user("cy", "biology", Fraction(1, 2)),
]


def test_classic_usage_is_partly_that_of_the_siblings() -> None:
    assert normalised_shares(LAB)["bo"] == Fraction(3, 8)
    used = effective_usage(LAB)
    assert used["physics"] == used["ada"] == Fraction(1, 2)
    assert used["bo"] == Fraction(1, 4), "half of what the account used beyond its own"
    assert used["cy"] == Fraction(1, 2)


def test_classic_factor_halves_with_every_time_that_the_shares_are_used_up() -> None:
    factors = classic_fairshare(LAB)
    assert factors["biology"] == factors["cy"] == 0.25, "twice its quarter"
    assert factors["physics"] == pytest.approx(2 ** (-2 / 3))
    assert factors["cy"] < factors["ada"] < factors["bo"] < 1


def test_classic_without_use_and_without_shares() -> None:
    factors = classic_fairshare([account("a"), user("u", "a"), account("b", shares=0), user("v", "b")])
    assert factors == {"a": 1, "u": 1, "b": 0, "v": 0}


def test_classic_with_the_shares_of_the_parent() -> None:
    tree = [*LAB, user("di", "physics", shares=None)]
    assert normalised_shares(tree)["di"] == Fraction(3, 4) and effective_usage(tree)["di"] == Fraction(1, 2)


# -- fair tree -----------------------------------------------------------------------------------------------------


def test_all_of_a_branch_before_the_next() -> None:
    """`b` as a whole is behind: its heavy user goes before the one of `a` who never ran."""
    tree = [
        account("a"),
        user("a1", "a", 30),
        user("a2", "a", 0),
        account("b"),
        user("b1", "b", 10),
        user("b2", "b", 0),
    ]
    assert level_fairshare(tree)["a"] == Fraction(2, 3) and level_fairshare(tree)["b"] == 2
    assert fair_tree(tree) == {"b2": 1, "b1": Fraction(3, 4), "a2": Fraction(1, 2), "a1": Fraction(1, 4)}


def test_users_that_tie_share_a_rank_and_the_next_is_as_many_behind() -> None:
    tree = [user("u", usage=1), user("v", usage=1), user("w", usage=2)]
    assert fair_tree(tree) == {"u": 1, "v": 1, "w": Fraction(1, 3)}


def test_accounts_that_tie_are_ranked_as_one() -> None:
    tree = [account("a"), account("b"), user("a1", "a", 1), user("a2", "a", 3), user("b1", "b", 2), user("b2", "b", 2)]
    ranks = fair_tree(tree)
    assert ranks == {"a1": 1, "b1": Fraction(3, 4), "b2": Fraction(3, 4), "a2": Fraction(1, 4)}


def test_a_user_that_ties_with_an_account_ranks_with_its_first() -> None:
    tree = [user("u", usage=4), account("a"), user("a1", "a", 1), user("a2", "a", 3)]
    assert fair_tree(tree) == {"u": 1, "a1": 1, "a2": Fraction(1, 3)}


def test_no_shares_come_last_whatever_was_used_and_no_use_comes_first() -> None:
    tree = [user("none", usage=0, shares=0), user("much", usage=99), user("never", usage=0)]
    assert level_fairshare(tree) == {"none": 0, "much": Fraction(1, 2), "never": INFINITY}
    assert fair_tree(tree) == {"never": 1, "much": Fraction(2, 3), "none": Fraction(1, 3)}


def test_fairshare_parent_lifts_the_members_of_an_account_to_its_siblings_and_a_user_to_the_top() -> None:
    tree = [
        account("lab"),
        account("guests", "lab", shares=None),
        user("g1", "guests", 10, shares=1),
        user("g2", "guests", 90, shares=None),
        user("u", "lab", 20, shares=3),
    ]
    levels = level_fairshare(tree)
    assert "guests" not in levels
    assert (levels["g1"], levels["u"], levels["g2"]) == (Fraction(1, 4) * 12, Fraction(3, 4) * 6, INFINITY)
    assert fair_tree(tree) == {"g2": 1, "u": Fraction(2, 3), "g1": Fraction(1, 3)}


# -- properties ----------------------------------------------------------------------------------------------------

checked = settings(max_examples=200, deadline=None)
rows = st.tuples(st.integers(0, 9), st.none() | st.integers(0, 4), st.integers(0, 5))


def tree_of(accounts: list[tuple[int, int | None, int]], users: list[tuple[int, int | None, int]]) -> list[Association]:
    """Accounts under earlier ones or at the top, users anywhere."""
    tree = [
        account(f"a{n}", f"a{at % n}" if n and at % 3 else "", shares) for n, (at, shares, _) in enumerate(accounts)
    ]
    return tree + [user(f"u{n}", f"a{at % (len(tree) + 1)}", use, shares) for n, (at, shares, use) in enumerate(users)]


trees = st.builds(tree_of, st.lists(rows, max_size=5), st.lists(rows, min_size=1, max_size=7))


@checked
@given(trees, st.randoms(use_true_random=False))
def test_the_order_of_the_associations_does_not_count(tree: list[Association], random: Random) -> None:
    mixed = random.sample(tree, len(tree))
    assert fair_tree(mixed) == fair_tree(tree) and level_fairshare(mixed) == level_fairshare(tree)
    assert effective_usage(mixed) == effective_usage(tree)


@checked
@given(trees)
def test_every_user_has_a_rank_that_says_how_many_stand_before(tree: list[Association]) -> None:
    ranks = fair_tree(tree)
    users = [one.id for one in tree if one.user]
    assert sorted(ranks) == sorted(users)
    assert all(rank == 1 - Fraction(sum(ranks[o] > rank for o in users), len(users)) for rank in ranks.values())


@checked
@given(trees)
def test_against_sorting_by_the_levels_of_the_whole_path(tree: list[Association]) -> None:
    """Without Fairshare=parent: from the top, the larger level first; users no later than what they tie with."""
    tree = [replace(one, shares=1 if one.shares is None else one.shares) for one in tree]
    levels, named = level_fairshare(tree), {one.id: one for one in tree}

    def key(name: str) -> list[Ratio]:
        above = named[name].parent
        return [*(key(above) if above in named else []), -levels[name]]

    keys = {one.id: key(one.id) for one in tree if one.user}
    ranks = fair_tree(tree)
    for one, mine in keys.items():
        for other, theirs in keys.items():
            if mine != theirs and mine != theirs[: len(mine)] and theirs != mine[: len(theirs)]:
                assert (ranks[one] > ranks[other]) == (mine < theirs)
            if mine == theirs:
                assert ranks[one] == ranks[other]
            elif mine == theirs[: len(mine)]:
                assert ranks[one] >= ranks[other]


@checked
@given(trees)
def test_effective_usage_of_a_level_lies_between_its_own_and_its_parents(tree: list[Association]) -> None:
    used, named = effective_usage(tree), {one.id: one for one in tree}
    for one in tree:
        if one.parent in named and one.shares is not None:
            assert used[one.id] <= used[one.parent]
    assert all(0 <= factor <= 1 for factor in classic_fairshare(tree).values())
