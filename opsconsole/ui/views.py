"""What only looks: moving between pages, panes and rows; zoom, pause; explanations and help.

Dialogs are imported when they are opened first: the first frame does not wait for them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opsconsole.presenting.filtering import Filter
from opsconsole.presenting.rows import keys_of
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.arranging import Arranging
from opsconsole.ui.messages import RowOpened
from opsconsole.ui.pages import PAGES
from opsconsole.ui.places import DETAILS
from opsconsole.ui.subjects import NAMELESS, opened
from opsconsole.ui.themes import THEMES
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.screens.text import Text


class ConsoleViews(Arranging):
    """Nothing here can send anything."""

    # -- moving ----------------------------------------------------------------------------------------------------

    def _do_previous(self, words: str) -> None:
        if self.past:
            self.go(*self.past.pop(), remember=False)

    def _do_back(self, words: str) -> None:
        """The nearest thing first: what was said, what was done, the filter, the marks, zoom, the page."""
        table = self.table
        if self.note:
            self.say("")
        elif self.asking.dismiss():
            self.draw_lines()
        elif table is not None and table.rowset.filter.text:
            table.apply(Filter())
        elif table is not None and table.rowset.marks:
            table.rowset.marks.clear()
            table.refresh()
        elif self.zoomed:
            self._do_zoom("")
        else:
            self._do_previous(words)

    @property
    def how_to_quit(self) -> str:
        return f"{self.keymap.shown('quit') or ':quit'} quits; runs and drains go on"

    def _do_leave(self, words: str) -> None:
        if self.past:
            self._do_previous(words)
        else:
            self.say(self.how_to_quit)

    def _do_neighbour_before(self, words: str) -> None:
        self._neighbour(-1)

    def _do_neighbour_after(self, words: str) -> None:
        self._neighbour(1)

    def _neighbour(self, by: int) -> None:
        """The next row; in a detail, the detail of the next row where this one was opened."""
        view = self.picture
        if self.place.page not in DETAILS or not self.past or view is None:
            if self.table is not None:
                self.table.action_move(by)
            return
        above = self.past[-1]
        pane = self._panes[above.page]
        build = PAGES[above.page].panes[pane]
        if build is None:
            return
        table = self.query_one(f"#{pane}", Table)
        table.show(build(self, view, above.subject))
        keys = keys_of(table.rowset.rows)
        after = keys[table.rowset.at + 1 :] if by > 0 else keys[: table.rowset.at][::-1]
        for key in after:
            place = opened(view, key, above)
            if place is not None and place not in (above, self.place):
                table.move_to_key(key)
                self.go(*place, remember=False)
                return
        self.say("this is the last one" if by > 0 else "this is the first one")

    def on_row_opened(self, message: RowOpened) -> None:
        self._open(message.key)

    def _do_go(self, words: str) -> None:
        if words:
            self._open(words)
        else:
            self._ask(":", "go ")

    def _open(self, key: str) -> None:
        """A detail; of a reason, who waits for it; else why it stands as it does."""
        kind, _, value = key.partition(":")
        if self.picture is None:
            return
        if kind == "reason":
            self.go("queue")
            self.show_pane("t-queue")
            self._filter(f"reason={value}")
            return
        place = opened(self.picture, key, self.place)
        if place is not None and place != self.place:
            self.go(*place)
        elif kind not in NAMELESS or self.place.subject:
            self._do_explain("" if kind in NAMELESS or place == self.place else key)

    def _do_pane(self, words: str) -> None:
        self._next_pane(1)

    def _next_pane(self, by: int) -> None:
        names = list(PAGES[self.page].panes)
        self.show_pane(names[(names.index(self.pane) + by) % len(names)])
        self.draw()

    # -- views -----------------------------------------------------------------------------------------------------

    def _do_command(self, words: str) -> None:
        self._ask(":")

    def _do_wide(self, words: str) -> None:
        if self.table is not None:
            wide = self.table.toggle_wide()
            self.say("all columns; h and l move sideways" if wide else "the columns that fit")

    def _do_zoom(self, words: str) -> None:
        self.zoomed = not self.zoomed
        self._fit(self.size.width, self.size.height)
        self.draw()

    def _do_pause(self, words: str) -> None:
        self.paused_at = None if self.paused else time.monotonic()
        self.redraw()

    def _do_theme(self, words: str) -> None:
        if words in THEMES:
            self.theme = words
        else:
            self.say(f"themes: {' '.join(THEMES)}")

    # -- looking ---------------------------------------------------------------------------------------------------

    def _do_explain(self, words: str) -> None:
        """What is named, or under the cursor. It stays live, and `[ ]` go on to the neighbours."""
        key = words or self._pointed()
        if self.picture is None or not key:
            self.say("explain: select something first, or name it")
            return

        from opsconsole.ui.screens.text import TextScreen
        from opsconsole.ui.subjects import explained

        def live(view: ClusterView) -> Text:
            return explained(view, key, self.alerts.texts)

        neighbour = None if words else self._explain_neighbour
        self.push_screen(TextScreen(live(self.picture), live, neighbour))
        self.call_after_refresh(self._fit, self.size.width, self.size.height)

    def _pointed(self) -> str:
        """The row under the cursor; on a detail, where the row is of nothing that has a name, whose it is."""
        key = (self.table.rowset.cursor if self.table is not None else None) or ""
        if self.place.subject and (self.picture is None or opened(self.picture, key, self.place) is None):
            return self.place.subject
        return "" if key.partition(":")[0] in NAMELESS else key

    def _explain_neighbour(self, by: int) -> None:
        if self.table is not None:
            self.table.action_move(by)
            self.pop_screen()
            self._do_explain("")

    def _do_results(self, words: str) -> None:
        from opsconsole.ui.screens.text import Text, TextScreen

        lines = ["".join(cell.text for cell in result.cells()) for result in self.asking.results]
        self.push_screen(TextScreen(Text("Asked for from here", lines or ["nothing yet"])))

    def _do_help(self, words: str) -> None:
        from opsconsole.ui.screens.help import help_text
        from opsconsole.ui.screens.text import TextScreen

        self.push_screen(TextScreen(help_text(self.page, self.keymap)))

    def _do_keys(self, words: str) -> None:
        from opsconsole.ui.screens.keys import KeysScreen

        self.push_screen(KeysScreen(self))

    def _do_poll(self, words: str) -> None:
        self.source.poll_now()
        self.say("asked for fresh readings")
        self.redraw()
