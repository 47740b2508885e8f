"""Which rows a table shows, in which order, with which columns; views that keep all of it under a name.

Dialogs are imported when they are opened first: the first frame does not wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from opsconsole.presenting.arranging import Arrangement, Kept, View, no_view
from opsconsole.presenting.completing import complete_filter
from opsconsole.presenting.filtering import Filter, FilterError, parse_filter
from opsconsole.presenting.rowset import NOTHING
from opsconsole.presenting.sorting import DOWN, read_order
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.base import ConsoleBase
from opsconsole.ui.desk import Desk
from opsconsole.ui.messages import LineTyped, Rearranged
from opsconsole.ui.pages import PAGES
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.widgets.entry import Entry
from opsconsole.ui.widgets.table import Table

NATURAL, USUAL = "natural", "usual"  # orders and columns of a table by itself


class Arranging(ConsoleBase):
    """Nothing here can send anything."""

    def __init__(self, source: ConsoleSource, desk: Desk | None = None) -> None:
        super().__init__(source, desk)
        self._entry_for: Table | None = None
        self.arrangements = self.desk.arrangements
        self._restored: set[str] = set()  # tables
        self._changes: list[tuple[Callable[[Kept], Kept], str]] = []  # that are still to be kept

    def on_mount(self) -> None:
        """What cannot be read is said, and stays as it is. Textual calls it before that of the class below."""
        try:
            self.arrangements.load()
        except (ValueError, OSError) as error:
            self.alerts.say("views", str(error))

    def _draw_page(self, view: ClusterView) -> None:
        """A table that is drawn first is as it was left."""
        for name in PAGES[self.page].panes.keys() - self._restored:
            left = self.arrangements.kept.tables.get(name)
            table = next(iter(self.query(f"#{name}").results(Table)), None)
            if left is not None and table is not None:
                table.show_as(Filter(), left.order, left.columns)
            self._restored.add(name)
        super()._draw_page(view)

    # -- filter ----------------------------------------------------------------------------------------------------

    def _do_filter(self, words: str) -> None:
        if self.table is None:
            return
        if words:
            self._filter(words)
        else:
            self._ask("/", self.table.rowset.filter.text)

    def _filter(self, text: str) -> None:
        """Raises FilterError."""
        if self.table is not None:
            self.table.apply(parse_filter(text, self.table.rowset.view.columns))
            self.draw()

    def _ask(self, kind: str, text: str = "") -> None:
        self._entry_for = self.table
        self.query_one(Entry).ask("/" if kind == "/" else ":", text)

    def on_line_typed(self, message: LineTyped) -> None:
        """The filter works as it is typed, as far as it is right. What is wrong is said beside it, else what could be
        typed next."""
        if message.kind == ":" or self._entry_for is None:
            return
        entry, columns = self.query_one(Entry), self._entry_for.rowset.view.columns
        try:
            self._entry_for.apply(parse_filter(message.text, columns))
            entry.suggest()
        except FilterError as error:
            self._entry_for.apply(parse_filter(message.text[: error.start], columns))
            unfinished = error.end == len(message.text)
            if not (unfinished and entry.suggest()):
                entry.hint(str(error), (error.start, error.end))

    # -- order and columns -----------------------------------------------------------------------------------------

    def _do_sort(self, words: str) -> None:
        """Without words it asks by which column."""
        table = self.table
        if table is None:
            return
        if not words:
            from opsconsole.ui.screens.pick import SortScreen

            self.push_screen(SortScreen(table))
            return
        try:
            table.sort(() if words == NATURAL else read_order(words, table.rowset.view.columns))
        except ValueError as error:
            self.say(str(error))
            return
        self._remember(table)

    def _do_columns(self, words: str) -> None:
        """Without words it asks which."""
        table = self.table
        if table is None:
            return
        if not words:
            from opsconsole.ui.screens.pick import ColumnsScreen

            self.push_screen(ColumnsScreen(table))
            return
        try:
            keys = () if words == USUAL else read_order(words, table.rowset.view.columns)
        except ValueError as error:
            self.say(str(error))
            return
        table.choose([key.removeprefix(DOWN) for key in keys])
        self._remember(table)

    def on_rearranged(self, message: Rearranged) -> None:
        self._remember(message.table)

    def _remember(self, table: Table) -> None:
        name, arrangement = table.id or "", table.arrangement
        self._keep(lambda kept: kept.left(name, arrangement))

    def _keep(self, change: Callable[[Kept], Kept], said: str = "") -> None:
        """`said` once it is kept. Not in the console's own time: a home directory may hang while this one leads."""
        self._changes.append((change, said))
        self.supervisor.once("keeping", self._keep_all)

    async def _keep_all(self) -> None:
        """One after the other."""
        while self._changes:
            change, said = self._changes.pop(0)
            try:
                await asyncio.to_thread(self.arrangements.change, change)
                self.alerts.over("views")
            except (ValueError, OSError) as error:
                said = clean(str(error))
            if said:
                self.say(said)
            self.draw()

    # -- views -----------------------------------------------------------------------------------------------------

    def _do_view(self, words: str) -> None:
        """Without a name it shows which there are."""
        if not words:
            from opsconsole.ui.screens.pick import ViewsScreen

            self.push_screen(ViewsScreen(self))
        else:
            self.show_view(words)

    def show_view(self, words: str) -> None:
        """What is wrong with it is said."""
        view = self.arrangements.kept.views.get(words)
        if view is None:
            self.say(no_view(words, self.arrangements.kept.views))
            return
        page = self.page_of(view.table)
        if not page:
            self.say(f"view {words}: this console has no table {view.table!r}; :delete_view {words} drops it")
            return
        self.go(page)
        self.show_pane(view.table)
        self._show_view(words, view.arrangement)

    def page_of(self, table: str) -> str:
        """Empty where this console has no such table."""
        return next((page.name for page in PAGES.values() if table in page.panes), "")

    def _show_view(self, name: str, arrangement: Arrangement) -> None:
        table = self.table
        if table is None:
            return
        try:
            filter = parse_filter(arrangement.filter, table.rowset.view.columns)
        except FilterError as error:
            self.say(f"view {name}: {error}")
            return
        table.show_as(filter, arrangement.order, arrangement.columns)
        self.say(f"view {name}: {arrangement.words()}")

    def _do_save_view(self, words: str) -> None:
        table = self.table
        if table is None:
            return
        if not words:
            self._ask(":", "save_view ")
            return
        how = "replaced" if words in self.arrangements.kept.views else "kept"
        view = View(table.id or "", table.arrangement)
        self._keep(lambda kept: kept.named(words, view), f"view {words} {how}: {view.arrangement.words()}")

    def _do_delete_view(self, words: str) -> None:
        if words:
            self.delete_view(words)
        else:
            self._do_view("")

    def delete_view(self, name: str) -> None:
        self._keep(lambda kept: kept.without(name), f"view {name} is deleted")

    # -- completion ------------------------------------------------------------------------------------------------

    def _complete(self, kind: str, text: str) -> Sequence[str]:
        view = self._entry_for.rowset.view if self._entry_for is not None else NOTHING
        if kind == "/":
            return complete_filter(text, view)
        keys, word = [column.key for column in view.columns if column.key], text.split(" ")[0]
        own = {"sort": [*keys, NATURAL], "columns": [*keys, USUAL], "filter": complete_filter(text, view)}
        own |= dict.fromkeys(("view", "delete_view", "save_view"), sorted(self.arrangements.kept.views))
        return own[word] if word in own and " " in text else super()._complete(kind, text)
