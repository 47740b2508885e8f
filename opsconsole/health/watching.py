"""What lasts: a finding counts once it has held as long as its rule wants, and ends once it has been quiet as long.

Times are seconds of any clock that does not jump; a GPU that cannot be read neither confirms nor ends anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from opsconsole.health.finding import Evidence, Finding, known, number
from opsconsole.health.observing import Look, gpus_of
from opsconsole.health.rules import Rules

Key = tuple[str, str, int | None]
SAME_S = 0.01  # the same probe, looked at again, has the same time but for rounding


@dataclass
class Track:
    """One finding over time. `looks`: how often it was seen: one look never confirms what must last."""

    newest: Finding
    since: float
    seen: float
    looks: int = 1
    raised: bool = False


@dataclass
class Watch:
    """The memory of one host, for as long as somebody looks at it."""

    tracks: dict[Key, Track] = field(default_factory=dict)
    counters: dict[tuple[str, str], float] = field(default_factory=dict)  # by rule and GPU
    grown: dict[tuple[str, str], Track] = field(default_factory=dict)
    boot: str = ""

    def settle(self, look: Look, probe: Mapping[str, Any], rules: Rules, now: float, ago_s: float) -> list[Finding]:
        """The findings that count or are watched. The same probe again adds nothing."""
        boot = str(probe.get("boot_id") or "")
        if boot != self.boot:
            self.tracks.clear()
            self.counters.clear()
            self.grown.clear()
            self.boot = boot
        met = {one.key: one for one in look.findings}
        for key, one in met.items():
            self._see(key, one, now - ago_s)
        self._forget(met, look.blind, now)
        found = [self._told(track, key in met, now) for key, track in self.tracks.items()]
        self._count(probe, rules, now - ago_s, ago_s)
        return [*found, *self._growing(now)]

    def _see(self, key: Key, one: Finding, at: float) -> None:
        track = self.tracks.get(key)
        if track is None:
            track = self.tracks[key] = Track(one, at, at)
        elif at > track.seen + SAME_S:
            track.looks += 1
            track.seen = at
        track.newest = one
        lasted = track.seen - track.since
        track.raised = track.raised or not one.rule.lasts_s or (track.looks > 1 and lasted >= one.rule.lasts_s)

    def _told(self, track: Track, met: bool, now: float) -> Finding:
        """While it is quiet and not over it is told with the age of what was seen last."""
        one = track.newest
        ago_s = now - track.seen
        evidence = one.evidence if met else (replace(one.evidence[0], ago_s=ago_s), *one.evidence[1:])
        return replace(one, evidence=evidence, first_ago_s=now - track.since, confirmed=track.raised)

    def _forget(self, met: Mapping[Key, Finding], blind: set[tuple[str, str]], now: float) -> None:
        for key, track in list(self.tracks.items()):
            if key in met:
                continue
            if (key[0], key[1]) in blind:
                track.seen = max(track.seen, now)  # nobody saw that it ended
            elif not track.raised or now - track.seen > track.newest.rule.lasts_s:
                del self.tracks[key]

    def _count(self, probe: Mapping[str, Any], rules: Rules, at: float, ago_s: float) -> None:
        for gpu in gpus_of(probe, ago_s):
            for rule in rules.growing:
                assert rule.check is not None
                have = number(known(gpu.reading(rule.check[0])))
                if have is None:
                    continue
                before = self.counters.get((rule.id, gpu.pci))
                self.counters[rule.id, gpu.pci] = have
                if before is not None and have - before > float(rule.check[2]):
                    name = rule.check[0].replace("_", " ")
                    one = gpu.find(rule, "change", f"{name} {before:g} -> {have:g}")
                    self.grown[rule.id, gpu.pci] = Track(one, at, at, raised=True)

    def _growing(self, now: float) -> Iterator[Finding]:
        for key, track in list(self.grown.items()):
            ago_s = now - track.seen
            if ago_s > (track.newest.rule.fades_s or 0.0):
                del self.grown[key]
                continue
            evidence = track.newest.evidence[0]
            yield replace(track.newest, evidence=(Evidence("change", evidence.text, ago_s),), first_ago_s=ago_s)


def once(look: Look) -> Iterable[Finding]:
    """Without a memory: what must last is seen, and not more."""
    return [replace(one, confirmed=not one.rule.lasts_s) for one in look.findings]
