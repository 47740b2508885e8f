"""The handover of a shift: a night with everything in it, told as Markdown and as data."""

from __future__ import annotations

import re

import pytest

from opsconsole.presenting.handover import MOST, SECTIONS, Handover, handover
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    BreakerReset,
    By,
    CancelRequested,
    ClockStepped,
    CordonRequested,
    DrainRequested,
    HostDeclared,
    HostUnreachable,
    MemberNeverStarted,
    RequestRefused,
    RequeueRequested,
    UndrainRequested,
    UsageForgotten,
    WeightChanged,
)
from scheduler_core.units import HOUR, MINUTE, WEIGHT
from tests.core.clusters import PASS, Remembered
from tests.ui.worlds import HOSTILE, WALL_MS, FakeSource, happenings

KIM = By("kim", "fan change")


def night() -> Remembered:
    """Two hours: a preemption, failures, drains that end and one that goes on, a lost host, overrides."""
    c = Remembered({"olmo": 3, "vision": 1}, {f"gpu{n:02}": 8 for n in range(1, 7)})
    for n in range(1, 4):
        c.running(f"v{n}", "vision", 8, HOUR, owner="maria", name=f"resnet-{n}", resumable=True)
    c.running("bad", "vision", 8, HOUR, owner="tom", name=HOSTILE, max_retries=0)
    c.finish("bad", 3)
    c.later(HOUR)
    c.submit("o1", "olmo", 32, HOUR, owner="ada", name="olmo-7b")
    for victim in [w for w in ("v1", "v2", "v3") if c.engine.state.runs[c.run(w)].stop is not None]:
        c.finish(victim, 143, signalled=True)
    c.later(PASS)
    c.start("o1")
    c.later(MINUTE, CordonRequested(HostName("gpu06"), By("lee")))
    c.later(MINUTE, DrainRequested(DrainId("d1"), HostName("gpu05"), KIM))
    c.later(MINUTE, UndrainRequested(HostName("gpu05"), By("kim", "fan changed")))
    return c


def told(c: Remembered, hours: float = 12) -> Handover:
    view = FakeSource(c).view()
    return handover(view, happenings(c.steps, c.now), WALL_MS - int(hours * HOUR))


def section(found: Handover, key: str) -> list[str]:
    return [f"{entry.about}: {entry.said}" for entry in found.sections[key]]


def test_a_night(utc: None) -> None:
    c = night()
    found = told(c)
    assert section(found, "runs_failed") == [f"bad~1: exit status 3 on gpu04; {HOSTILE} bad of tom, vision"]
    preempted = section(found, "preemptions")
    assert preempted and all("resnet-" in said and "for o1: olmo has got" in said for said in preempted)
    assert section(found, "drains_ended") == [
        "gpu05: taken back by kim: fan changed; asked for Sun 30 Nov 14:31 UTC by kim: fan change"
    ]
    assert section(found, "hosts_out") == ["gpu06: cordoned by lee, who gave no reason"]
    assert section(found, "needs") == [
        "bad: held: failed: exit status 3 on gpu04. To do: release lets it wait again, cancel ends it; "
        "opsconsole logs bad shows what it wrote."
    ]
    assert found.counts["submitted"] == 5


def test_as_markdown(utc: None) -> None:
    text = told(night()).markdown()
    assert text.startswith(
        "# Handover of h100\n\nSun 30 Nov 02:32 UTC to Sun 30 Nov 14:32 UTC (12h). Leader: serve at head.\n"
        "5 workloads submitted, "
    )
    assert re.search(r"1 failed; 1 run preempted, 8\.0 GPU-h lost by that\.", text), text
    assert "\n## Drains that ended (1)\n\n- Sun 30 Nov 14:32 UTC, **gpu05**: taken back by kim: fan changed;" in text
    assert "\\[red\\]x\\[/\\]" in text and "[red]" not in text
    assert text.endswith(
        "Nothing of: drains that go on, hosts that went away, overrides, refused, breaker, leaked GPUs, clock steps.\n"
    )


def test_every_time_names_its_zone(monkeypatch: pytest.MonkeyPatch, utc: None) -> None:
    import time

    monkeypatch.setenv("TZ", "CET-1CEST")
    time.tzset()
    times = re.findall(r"\d\d:\d\d( \w+)?", told(night()).markdown())
    assert times and set(times) <= {" CET", " CEST"}


def test_what_is_older_is_not_told() -> None:
    found = told(night(), hours=0.5)
    assert section(found, "runs_failed") == [] and len(found.sections["drains_ended"]) == 1


def test_a_drain_that_was_asked_for_before_is_told_with_who_asked() -> None:
    c = Remembered({"a": 1}, {"h1": 8})
    c.running("w")
    c.see(DrainRequested(DrainId("d1"), HostName("h1"), KIM))
    c.later(2 * HOUR)
    c.finish("w", 143, signalled=True)
    c.see(c.seen("h1", empty=True))
    (said,) = section(told(c, hours=1), "drains_ended")
    assert said.endswith("by kim: fan change") and said.startswith("h1: drained; asked for Sun 30 Nov 12:3")


def test_a_drain_that_goes_on_says_whose_it_is_and_until_when() -> None:
    c = Remembered({"a": 1}, {"h1": 8, "h2": 8})
    c.running("w")
    c.see(DrainRequested(DrainId("d1"), HostName("h1"), KIM))
    (said,) = section(told(c), "drains_open")
    assert re.fullmatch(r"h1: mode contract, 1 run left, empty by .* UTC\. Asked for by kim: fan change", said)
    c.see(HostUnreachable(HostName("h1"), "timed out"))
    (said,) = section(told(c), "drains_open")
    assert "blocked: host unreachable, unverified" in said
    assert section(told(c), "hosts_lost") == ["h1: unreachable: timed out"]


def test_overrides_are_told_and_a_cancel_is_none() -> None:
    c = Remembered({"a": 1}, {"h1": 8, "h2": 8, "h3": 8})
    for wid in ("w1", "w2", "w3"):
        c.running(wid, owner="ada", resumable=True)
    c.see(RequeueRequested(WorkloadId("w1"), By("kim", "urgent"), override=True))
    c.see(CancelRequested(WorkloadId("w2"), By("ada")))
    c.see(DrainRequested(DrainId("d1"), HostName("h3"), By("kim", "smoke"), "now"))
    said = section(told(c), "overrides")
    assert [line.split(":")[0] for line in said] == ["w1~1", "w3~1"]
    assert "stopped although protected, by kim" in said[0] and "urgent" in said[0]


def test_a_word_for_a_host_is_an_override() -> None:
    c = Remembered({"a": 1}, {"h1": 8})
    c.running("w")
    c.later(MINUTE, HostUnreachable(HostName("h1"), "no route"))
    c.later(HOUR)
    c.see(HostDeclared(HostName("h1"), "dead", By("kim", "its power is off")))
    found = told(c)
    assert section(found, "overrides") == ["h1: declared dead by kim: its power is off"]
    assert re.fullmatch(r"h1: unreachable: no route; lost at .* UTC", section(found, "hosts_lost")[0])


def test_shares_changed_by_hand_are_overrides_and_refusals_are_told() -> None:
    c = Remembered({"a": 1, "b": 1}, {"h1": 8})
    c.see(WeightChanged(BudgetId("a"), 3 * WEIGHT, By("kim", "conference")), UsageForgotten(BudgetId("b"), KIM))
    c.see(RequestRefused("DrainRequested", "h1", "it is drained already", By("lee")), ClockStepped(-3600_000))
    found = told(c)
    assert section(found, "overrides") == [
        "a: weight 3 by hand, by kim: conference",
        "b: usage forgotten by kim: fan change",
    ]
    assert section(found, "refused") == ["h1: asked for by lee, who gave no reason; refused: it is drained already"]
    assert section(found, "clock") == [
        "clock: the head node's clock was set back by 1h: times before are in the old time; no promise moves"
    ]


def test_a_start_that_fails_and_a_breaker_that_was_reset() -> None:
    c = Remembered({"a": 1}, {"h1": 8})
    c.submit("w", owner="ada")
    c.see(MemberNeverStarted(c.run("w"), HostName("h1"), "no such program"), BreakerReset(KIM))
    found = told(c)
    assert section(found, "runs_failed") == ["w~1: did not start: no such program on h1; w of ada, a"]
    assert section(found, "breaker") == ["breaker: reset by kim: fan change"]


def test_a_run_that_nobody_remembers_is_told_all_the_same() -> None:
    c = Remembered({"a": 1}, {"h1": 8})
    c.running("w", owner="ada")
    c.finish("w", 1)
    c.see(CancelRequested(WorkloadId("w"), By("ada")))
    c.later(25 * HOUR)
    assert WorkloadId("w") not in c.engine.state.workloads
    assert section(told(c, hours=48), "runs_failed") == ["w~1: exit status 1 on h1; w of ada, a"]
    assert section(told(c, hours=24), "runs_failed") == []


def test_a_long_section_is_cut_for_people_and_whole_for_scripts() -> None:
    c = Remembered({"a": 1}, {"h1": 8})
    for n in range(MOST + 2):
        c.running(f"w{n}", gpus=1, owner="ada", max_retries=0)
        c.later(MINUTE)
        c.finish(f"w{n}", 1)
    found = told(c)
    assert "- and 2 more: `opsconsole handover --json` has them all" in found.markdown()
    assert len(found.data()["runs_failed"]) == MOST + 2


def test_data_have_the_documented_keys() -> None:
    data = told(night()).data()
    head = {"cluster", "leader", "since_ms", "until_ms", "submitted", "started"}
    assert set(data) == head | {section.key for section in SECTIONS}
    assert all({"about", "wall_ms", "said"} <= set(entry) for s in SECTIONS for entry in data[s.key])


def test_nobody_leads_and_nothing_is_known() -> None:
    c = Remembered({}, {})
    view = FakeSource(c, leader="nobody").view()
    text = handover(view, [], WALL_MS - HOUR).markdown()
    assert "Leader: nobody." in text and "NO LEADER" in text
