"""How people want tables to be: which rows, in which order, which columns. Kept for each table, and under names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

MOST_NAME = 40
MOST_VIEWS = 200


@dataclass(frozen=True, slots=True)
class Arrangement:
    """`order`: keys of columns, `-` before one turns it round. `columns`: keys of those to show; none: the usual."""

    filter: str = ""
    order: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def words(self) -> str:
        """For people: `/waited>2h, by -waited, 4 columns`."""
        parts = [f"/{self.filter}"] if self.filter else []
        parts += [f"by {' '.join(self.order)}"] if self.order else []
        parts += [f"{len(self.columns)} columns"] if self.columns else []
        return ", ".join(parts) or "as it is by itself"


@dataclass(frozen=True, slots=True)
class View:
    """An arrangement of one table, named by its place in the console."""

    table: str
    arrangement: Arrangement


@dataclass(frozen=True, slots=True)
class Kept:
    """`tables`: how each was left, without its filter, so that nothing is hidden at a start. `views`: by name."""

    tables: Mapping[str, Arrangement] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)

    def left(self, table: str, arrangement: Arrangement) -> Kept:
        """A person sorted that table, or chose its columns."""
        rest = {name: kept for name, kept in self.tables.items() if name != table}
        plain = replace(arrangement, filter="")
        return replace(self, tables=rest | ({table: plain} if plain != Arrangement() else {}))

    def named(self, name: str, view: View) -> Kept:
        """Raises ValueError for names that cannot be typed again, and for more views than anybody can look through."""
        if not name or len(name) > MOST_NAME or not name.isprintable() or len(name.split()) != 1:
            raise ValueError(f"a view is called by one word of at most {MOST_NAME} characters")
        if len(self.views) >= MOST_VIEWS and name not in self.views:
            raise ValueError(f"{MOST_VIEWS} views are kept already: :delete_view NAME makes room")
        return replace(self, views={**self.views, name: view})

    def without(self, name: str) -> Kept:
        """Raises ValueError where there is none of that name."""
        if name not in self.views:
            raise ValueError(no_view(name, self.views))
        return replace(self, views={other: view for other, view in self.views.items() if other != name})


def no_view(name: str, views: Mapping[str, View]) -> str:
    known = " ".join(sorted(views)) or "none is kept; :save_view NAME keeps one"
    return f"no view is called {name!r}: {known}"


class Arrangements:
    """Where they are kept: here, for as long as it lives. One that keeps them in a file raises ValueError or OSError
    in `change`."""

    def __init__(self) -> None:
        self.kept = Kept()

    def load(self) -> None:
        """Raises ValueError or OSError, with what to do about it."""

    def change(self, change: Callable[[Kept], Kept]) -> None:
        """Keeps what `change` makes of it. Raises what that raises."""
        self.kept = change(self.kept)
