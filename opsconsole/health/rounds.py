"""The newest verdict of each host, with its memory: looked at again when there is something to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from zlib import crc32

from opsconsole.health.rules import Override, Rules, builtin_rules
from opsconsole.health.verdict import Said, Status, Verdict, judge
from opsconsole.health.watching import Watch

QUIET_S = 20.0  # at most so long a verdict on a host that is well holds, while nothing fails and its kernel is silent


@dataclass
class _Round:
    """What a verdict was made of, and when."""

    watch: Watch
    made_of: tuple[Any, ...]
    at: float
    verdict: Verdict


@dataclass
class Rounds:
    """`overrides`: the site's own word on rules."""

    overrides: Mapping[str, Override] = field(default_factory=dict)
    _hosts: dict[str, _Round] = field(default_factory=dict)

    @cached_property
    def rules(self) -> Rules:
        return builtin_rules().overridden(self.overrides)

    def verdict(self, host: str, said: Said, calm: bool, now: float) -> Verdict:
        """`calm`: no reading fails or is denied, known without a look. `now`: seconds of a clock that never jumps."""
        last = self._hosts.get(host)
        newest = said.kernel[-1] if said.kernel else None
        made_of = (calm, said.fresh, said.expected, said.cleared_ago_s is None, len(said.kernel), id(newest))
        if last is not None and last.made_of == made_of and _holds(host, last, calm, now):
            return last.verdict
        watch = last.watch if last is not None else Watch()
        verdict = judge(said, self.rules, watch, now)
        self._hosts[host] = _Round(watch, made_of, now, verdict)
        return verdict


def _holds(host: str, last: _Round, calm: bool, now: float) -> bool:
    """The same moment, or a host of which nothing was to be told and nothing is. How long that holds differs from host
    to host: a thousand looked at in one go would hold the screen up.
    """
    well = calm and last.verdict.status is Status.OK and not last.verdict.findings
    quiet_s = QUIET_S * (0.5 + crc32(host.encode()) / (1 << 33))
    return now == last.at or (well and 0 <= now - last.at < quiet_s)
