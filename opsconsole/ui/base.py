"""The console's life: what keeps the picture fresh, and the terminal sane.

One frame per poll: a timer asks the source's version and shows a new picture only when there is one; ages tick from a
slower timer of their own, so that a source that has died shows. Drawing never takes more than a twentieth of the time.
"""

from __future__ import annotations

import time

from textual import events
from textual._styles_cache import StylesCache
from textual.await_complete import AwaitComplete
from textual.css.query import NoMatches
from textual.widgets import Input

from opsconsole.presenting.view import ClusterView
from opsconsole.ui.drawing import ConsolePages
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.supervise import Supervisor
from opsconsole.ui.terminal import Deadline, on_signals, tty_is_gone

LOOK_S = 0.25  # how often the source's version is asked
AGE_S = 1.0  # ages tick, whatever the source does
DRAW_SHARE = 20  # drawing waits so many times as long as it took


class ConsoleBase(ConsolePages):
    """`picture` is replaced, never changed; what is drawn comes from it alone."""

    def on_mount(self) -> None:
        self._remove_signals = on_signals(self._leave)
        self.set_interval(LOOK_S, self._look)
        self.set_interval(AGE_S, self._age)
        self.show_pane(self.pane)
        self.redraw()
        self.call_after_refresh(self._begin)  # what is known is shown before anything else is done

    def _begin(self) -> None:
        for name, work in {"source": self.source.run, **self.source.beside}.items():
            self.supervisor.keep(name, work)

    async def on_event(self, event: events.Event) -> None:
        """Keys that come in a burst, as over a slow line: each does its work before the next one is looked at.

        Textual hands a key to the widget that has the focus, whence it climbs back here, while the next one already
        goes to the same widget. So `:q` would zoom a pane. Where text is being typed its way is the right one.
        """
        if isinstance(event, events.Key) and not event.is_forwarded and await self._done_at_once(event):
            return
        await super().on_event(event)

    async def _done_at_once(self, event: events.Key) -> bool:
        self.asking.seen()
        if isinstance(self.focused, Input):
            return False
        if isinstance(screen := self.screen, LiveScreen):
            if screen.takes(event):
                return True
            await screen.stands()
        return await self._check_bindings(event.key)

    @property
    def failure(self) -> Exception | None:
        """The defect that ended the app: for the command line to tell, once the terminal is its own again."""
        return self._exception

    def _handle_exception(self, error: Exception) -> None:
        """A dialog that the end overtook while it was being made finds nothing of itself: that is no defect."""
        if not (self._exit and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Textual would print a traceback with all that its variables hold."""
        self._close_messages_no_wait()

    def _leave(self, status: int) -> None:
        """A signal: the terminal is left sane, within two seconds."""
        self.exit(status)

    async def _shutdown(self) -> None:
        """Leaving never hangs: what does not end in time is left behind, by force where there is a terminal."""
        deadline = None if self.is_headless else Deadline(self.return_value or 0)
        self.output.close()
        await self.supervisor.close()
        closing = Supervisor(self.alerts)
        closing.once("close", self.source.close)
        await closing.finish(1.5)
        await super()._shutdown()
        if (reader_ends := getattr(self._driver, "exit_event", None)) is not None:
            reader_ends.set()  # a hang-up brings SIGCONT too, for which Textual starts a second one and waits for one
        if deadline is not None:
            deadline.met()

    def pop_screen(self) -> AwaitComplete:
        """A dialog goes with all that it drew: Textual 8 keeps that of a thousand widgets, through a method's cache."""
        StylesCache.get_inner_outer.cache_clear()
        return super().pop_screen()

    # -- showing ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if not self.is_headless and tty_is_gone():
            self.exit(129)
        elif not self.paused and self.source.version != self._shown_version and time.monotonic() >= self._draw_again_at:
            self.redraw()

    def _age(self) -> None:
        if time.monotonic() >= self._draw_again_at:
            self.redraw()

    def fresh_picture(self) -> ClusterView | None:
        """The world as it is at this moment. What fails is said, and the old picture stays."""
        try:
            self._shown_version = self.source.version
            self.picture = self.source.view()
            self.alerts.over("picture")
        except Exception as error:
            self.alerts.failed("picture", error)
        self.logbook.look(self.picture, self.alerts.texts)
        return self.picture

    def redraw(self) -> None:
        """Everything that is visible, from a new picture with ages as of now unless it is held still."""
        begun = time.monotonic()
        if not self.paused:
            self.fresh_picture()
        self.draw()
        pause_s = DRAW_SHARE * (time.monotonic() - begun)
        if self.settings.slow_link and self.picture is not None:
            pause_s = max(pause_s, self.picture.interval_s)
        self._draw_again_at = time.monotonic() + pause_s
