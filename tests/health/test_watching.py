"""What lasts counts, what flickers does not, and what was raised ends only when it has been quiet for long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from opsconsole.health.rules import builtin_rules
from opsconsole.health.verdict import Said, Status, Verdict, judge
from opsconsole.health.watching import Watch
from tests.health.said import GPUS, but, gpu, lost, probe, xid

RULES = builtin_rules()
HOT = {"clock_event_reasons": ["hw_thermal_slowdown"]}  # counts after a minute
INTERVAL_S = 2.0


@dataclass
class Watched:
    """A host that is probed every other second. Each look is at the probe of this moment."""

    now: float = 1000.0
    watch: Watch = field(default_factory=Watch)

    def look(self, said: dict[str, Any], after_s: float = INTERVAL_S) -> Verdict:
        self.now += after_s
        return judge(Said(GPUS, said, 0.0), RULES, self.watch, self.now)

    def looks(self, said: dict[str, Any], for_s: float) -> Verdict:
        for _ in range(int(for_s / INTERVAL_S)):
            found = self.look(said)
        return found


def test_what_lasts_is_confirmed_and_what_was_quiet_as_long_is_over() -> None:
    host = Watched()
    assert host.look(but(3, gpu(3, **HOT))).status is Status.WARN
    assert host.looks(but(3, gpu(3, **HOT)), 58).status is Status.WARN
    raised = host.looks(but(3, gpu(3, **HOT)), 4)
    assert (raised.status, raised.findings[0].confirmed) == (Status.DEGRADED, True)
    assert raised.findings[0].first_ago_s == 62
    assert host.looks(probe(), 56).status is Status.DEGRADED
    still = host.look(probe())
    assert still.findings[0].ago_s == 58, "told with the age of what was seen last"
    assert host.looks(probe(), 6).status is Status.OK


def test_one_bad_sample_is_nothing_once_it_is_gone() -> None:
    host = Watched()
    assert host.look(but(3, gpu(3, power_w={"failed": "ERR!"}))).status is Status.WARN
    assert host.look(probe()).status is Status.OK


def test_the_same_probe_again_confirms_nothing() -> None:
    host = Watched()
    said = but(3, gpu(3, **HOT))
    for age in range(0, 200, 20):
        found = judge(Said(GPUS, said, float(age)), RULES, host.watch, host.now + age)
    assert found.status is Status.WARN


def test_what_cannot_be_read_confirms_nothing_and_ends_nothing() -> None:
    host = Watched()
    blind = but(3, gpu(3, clock_event_reasons={"failed": "ERR!"}))
    host.looks(but(3, gpu(3, **HOT)), 70)
    for _ in range(10):
        found = host.look(blind, 600)
    assert "heat:hardware" in [one.rule.id for one in found.findings if one.confirmed]
    assert host.looks(probe(), 70).status is Status.OK


def test_hard_facts_need_no_second_look() -> None:
    host = Watched()
    assert host.look(but(3, lost(3))).status is Status.FAIL
    assert host.look(probe()).status is Status.OK


def test_a_reboot_forgets() -> None:
    host = Watched()
    host.looks(but(3, gpu(3, **HOT)), 70)
    assert host.look(probe(boot_id="another")).status is Status.OK


def test_a_counter_that_grows_is_news_for_an_hour() -> None:
    host = Watched()
    assert host.look(but(3, gpu(3, nvlink_recovery_errors=7))).status is Status.OK, "it may be as old as the driver"
    grown = host.look(but(3, gpu(3, nvlink_recovery_errors=9)))
    assert [(one.rule.id, one.slot, one.evidence[0].text) for one in grown.findings] == [
        ("nvlink:recovery", 3, "nvlink recovery errors 7 -> 9")
    ]
    assert grown.findings[0].evidence[0].source == "change"
    assert host.look(but(3, gpu(3, nvlink_recovery_errors=9)), 3500).status is Status.WARN
    assert host.look(but(3, gpu(3, nvlink_recovery_errors=9)), 200).status is Status.OK


def test_a_counter_that_was_reset_is_no_growth() -> None:
    host = Watched()
    host.look(but(3, gpu(3, nvlink_recovery_errors=7)))
    assert host.look(but(3, gpu(3, nvlink_recovery_errors=0))).status is Status.OK
    assert host.look(but(3, gpu(3, nvlink_recovery_errors={"failed": "ERR!"}))).status is Status.WARN
    assert host.look(but(3, gpu(3, nvlink_recovery_errors=1))).findings


def test_the_kernels_lines_count_at_once() -> None:
    host = Watched()
    host.look(probe())
    found = judge(Said(GPUS, probe(), 0.0, [xid(79)]), RULES, host.watch, host.now + 1)
    assert found.status is Status.FAIL


@given(st.lists(st.booleans(), max_size=120))
@settings(max_examples=30, deadline=None)
def test_a_flicker_never_counts(hot: list[bool]) -> None:
    """Degraded is only what was hot in each look of a whole minute; and it holds for a minute after."""
    host, since, until = Watched(), 0.0, 0.0
    for is_hot in hot:
        found = host.look(but(3, gpu(3, **HOT)) if is_hot else probe())
        since = since or host.now if is_hot else 0.0
        if since and host.now - since >= 60:
            until = host.now + 60
        assert (found.status is Status.DEGRADED) == (host.now <= until)
        if found.status is Status.DEGRADED and not is_hot and host.now < until:
            since = 0.0
