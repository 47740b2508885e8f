"""What reaches beyond the screen: a login on a host, the clipboard, the bell, the mouse, the shell that is waiting."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from textual.screen import Screen

from opsconsole.presenting.rows import Row
from opsconsole.presenting.text import clean, few
from opsconsole.presenting.watching import Watched, end_of, watched, watches_table
from opsconsole.spans import parse_span_ms
from opsconsole.ui.actions import BY_NAME
from opsconsole.ui.commands import words_of
from opsconsole.ui.desk import Desk
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.sparing import Sparing
from opsconsole.ui.subjects import explained_name, named, subjects, workload_of
from opsconsole.ui.terminal import desktop_notice, ignoring_interrupts, run_in_front, set_mouse
from opsconsole.ui.views import ConsoleViews

WATCH_S = 1.0
ENDED_KEPT = 50
HANDOVER = "12h"


class ConsoleOutside(ConsoleViews):
    """Nothing here can send anything to the cluster."""

    def __init__(self, source: ConsoleSource, desk: Desk | None = None) -> None:
        super().__init__(source, desk)
        self.mouse = self.settings.mouse
        self._in_front = False  # something else has the terminal
        self._sparing = Sparing() if self.settings.slow_link else None
        self.watches: dict[str, Watched] = {}
        self.watches_ended: list[tuple[int, str]] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(WATCH_S, self._tell)

    # -- logging in ------------------------------------------------------------------------------------------------

    def _do_ssh(self, words: str) -> None:
        """On the named host, or the selected one. The console waits behind it, and what it leads is led on."""
        view = self.picture
        hosts: Sequence[str] = ()
        if view is not None:
            hosts = named(words_of(words), "host", view) if words else subjects(self.table, "host", view)
        if len(hosts) != 1:
            self.say(
                "ssh: one host at a time: Esc takes marks away"
                if hosts
                else "ssh: select a host first, or name it: :ssh HOST"
            )
        elif not self.supervisor.once("ssh", lambda: self._ssh(hosts[0])):
            self.say("ssh: there is a login already")

    async def _ssh(self, host: str) -> None:
        argv = await self.source.login(host)
        if self.is_headless or self._driver is None or not self._driver.can_suspend:
            self.say(f"ssh: not from here; elsewhere: {clean(' '.join(argv), 200)}")
            return
        self._in_front = True
        try:
            with self.batch_update(), ignoring_interrupts(), self.suspend():
                status = await run_in_front(argv)
        finally:
            self._in_front = False
        self.say(f"ssh {clean(host, 60)} ended" + (f" with exit status {status}" if status else ""))

    # -- copying ---------------------------------------------------------------------------------------------------

    def _do_copy(self, words: str) -> None:
        """To the clipboard by OSC 52, which a terminal may ignore without a word; so to a file as well."""
        known = BY_NAME["copy"].words
        what = words or known[0]
        text = self._to_copy(what)
        if what not in known or not text:
            self.say(f"copy: select something first; {', '.join(known)} can be copied")
            return
        self.say(self._copied(text))

    def _copied(self, text: str) -> str:
        """Where to, in words."""
        self.copy_to_clipboard(text)
        said = clean(text, 60) if "\n" not in text else f"{len(text.splitlines())} lines"
        try:
            return f"copied to {self.desk.save_copy(text)}, and to the clipboard where the terminal takes it: {said}"
        except OSError as error:
            return f"copied to the clipboard where the terminal takes it, to no file ({error}): {said}"

    def _to_copy(self, what: str) -> str:
        """Of the marked rows, else of the selected one: names, or what their cells say. Or all that is shown."""
        if what == "screen":
            lines = self.screen_stack[0]._compositor.render_strips()
            return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)
        if self.table is None or self.picture is None:
            return ""
        shown = self.table.rowset
        keys = shown.chosen()
        if what == "row":
            return "\n".join(_line(shown.rows[shown.place[key]]) for key in keys if key in shown.place)
        return "\n".join(dict.fromkeys(explained_name(self.picture, key) for key in keys))

    # -- handing over ----------------------------------------------------------------------------------------------

    def _do_handover(self, words: str) -> None:
        """Of the last 12 hours, or of the span that is named."""
        try:
            span_ms = parse_span_ms(words or HANDOVER)
        except ValueError as error:
            self.say(f"handover: {error}")
            return
        self.supervisor.once("handover", lambda: self._handover(span_ms))

    async def _handover(self, span_ms: int) -> None:
        from opsconsole.presenting.handover import handover
        from opsconsole.ui.screens.handover import HandoverScreen

        view = self.source.view()
        happenings, since_ms = await self.source.history(view.wall_ms - span_ms)
        await self.push_screen(HandoverScreen(handover(view, happenings, since_ms).markdown(), self._copied))
        self.call_after_refresh(self._fit, self.size.width, self.size.height)

    # -- being told ------------------------------------------------------------------------------------------------

    def _do_notify(self, words: str) -> None:
        """Of what is named, marked or selected; again: no more."""
        view = self.picture
        if view is None:
            return
        names = words_of(words)
        if not names and self.table is not None:
            names = [explained_name(view, key) for key in self.table.rowset.chosen()]
        found = [watched(view, name) or watched(view, workload_of(view, name)) for name in names]
        watches = [watch for watch in found if watch is not None]
        if not watches:
            what = few([clean(name, 40) for name in names])
            self.say(f"notify: {what} is nothing that will end" if what else "notify: select something, or name it")
        elif all(watch.key in self.watches for watch in watches):
            for watch in watches:
                del self.watches[watch.key]
            self.say(f"no more of {few([clean(watch.key, 60) for watch in watches])}")
        else:
            self.watches |= {watch.key: watch for watch in watches}
            self.say(f"you will be told of {few([clean(watch.key, 60) for watch in watches])}; :watches lists all")

    def _do_watches(self, words: str) -> None:
        from opsconsole.ui.screens.watches import WatchesScreen

        self.push_screen(
            WatchesScreen(
                lambda: watches_table(self.picture, [*self.watches.values()], self.watches_ended),
                self._drop,
            )
        )

    def _drop(self, key: str) -> None:
        self.watches.pop(key, None)

    def _tell(self) -> None:
        """Whatever the screen shows, also while it is held still."""
        if not self.watches:
            return
        try:
            view = self.source.view()
        except Exception:
            return  # said where the picture is drawn
        ends = {key: end for key, watch in self.watches.items() if (end := end_of(view, watch))}
        if not ends:
            return
        for key, end in ends.items():
            del self.watches[key]
            self.watches_ended.append((view.wall_ms, end))
        del self.watches_ended[:-ENDED_KEPT]
        self._notice("; ".join(ends.values()))

    def _notice(self, text: str) -> None:
        """Once for all that ended together."""
        self.say(f"✓ {text}")
        bell, desktop = self.settings.notify in ("both", "bell"), self.settings.notify in ("both", "desktop")
        signs = "\a" * bell + desktop_notice(text) * desktop
        if self._driver is None or self.is_headless or not signs:
            return
        if self._in_front:
            print(signs, end="", file=sys.__stdout__, flush=True)  # Textual's own way is shut meanwhile
        else:
            self._driver.write(signs)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        super()._display(screen, renderable if self._sparing is None else self._sparing.of(renderable))

    # -- the terminal ----------------------------------------------------------------------------------------------

    def _do_mouse(self, words: str) -> None:
        self.mouse = not self.mouse
        with contextlib.suppress(AttributeError):  # a driver without a mouse
            set_mouse(self._driver, self.mouse)
        self.say("the console takes the mouse" if self.mouse else "the mouse is the terminal's: it selects text")

    def _do_suspend(self, words: str) -> None:
        """To the shell that started it, until `fg`."""
        self.action_suspend_process()


def _line(row: Row) -> str:
    return "\t".join(cell.text for cell in row.cells)
