"""What a leader asks for in health's name: once for each cause, whatever restarts or stores do meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping

from opsconsole.following import Follower
from opsconsole.health.acting import Asked, asks
from opsconsole.health.verdict import Verdict

SETTLED_S = 300.0  # longer than anything must last: who has been watched for so long is known whole


class AutoDrain:
    def __init__(self, picture: Follower) -> None:
        self.picture = picture
        self._since: dict[str, float] = {}  # when each host was judged first, by this leader
        self._asked: dict[str, frozenset[str]] = {}  # of what no tick has journalled yet

    def look(self, verdicts: Mapping[str, Verdict]) -> list[Asked]:
        """What stands against hosts now, where that is news."""
        now_s, picture = time.monotonic(), self.picture
        for host in verdicts:
            self._since.setdefault(host, now_s)
        settled = {host for host, since in self._since.items() if now_s - since >= SETTLED_S}
        found = asks(picture.state, verdicts, picture.site.auto, settled, picture.clock.now())
        causes = {one.host: frozenset(getattr(one, "causes", ())) for one in found}
        new = [one for one in found if self._asked.get(one.host) != causes[one.host]]
        self._asked = {str(host): named for host, named in causes.items()}
        return new
