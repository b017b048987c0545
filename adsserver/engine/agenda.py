"""Which names of a view one stream still has to look at, and what of that it found to tell.

Each name is looked at once, however many responses it takes to tell of all; and no step looks at more names than fit
into its response, or than cost some ms, for everybody else waits meanwhile.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from adsserver.engine.change import Change, Room
from adsserver.engine.client_view import ClientView
from xdscore.limits import Limits
from xdscore.snapshot import Content


class Agenda:
    """Of one type on one stream, and `view`; for as long as nothing happens but that what it holds is told.

    `chosen`: answers, and what is new or different, for the next response; `losses`: what goes away, of all names that
    were looked at. Both by name.
    """

    __slots__ = ("_ahead", "_limits", "_next", "_room", "chosen", "losses", "view")

    def __init__(self, view: ClientView, names: Iterable[str], limits: Limits, room: Room | None = None) -> None:
        """`room`: what is left of the first response, where it holds something already.

        Of types of which what goes is said with what comes (I6), what is gone is looked at first.
        """
        self.view = view
        self.chosen: list[Change] = []
        self.losses: list[Change] = []
        self._limits = limits
        # The last one comes first.
        self._ahead = sorted(names, reverse=True)
        if view.kind.exclusive:
            self._ahead.sort(key=lambda name: name not in view.named)
        self._room = room or Room(limits)
        # What did not fit: with it the next response starts.
        self._next: Change | None = None

    def next_names(self) -> Iterator[str]:
        """The names to look at in this step; what is found is told to `note` before the next one is taken."""
        looks = 0
        while self._ahead and self._next is None and looks < self._limits.names_per_step:
            looks += 1
            yield self._ahead.pop()

    def note(self, change: Change) -> None:
        """Take in what there is to tell of the name that was looked at last."""
        if not change.forced and not isinstance(change.now, Content):
            self.losses.append(change)
        elif self._room.takes(change):
            self.chosen.append(change)
        else:
            self._next = change

    @property
    def complete(self) -> bool:
        """Whether the next response is known: it is full, or every name was looked at."""
        return self._next is not None or not self._ahead

    def take(self) -> list[Change]:
        """What goes into the next response; `chosen` is what follows in another one, as far as it is known."""
        taken, self.chosen, self._room = self.chosen, [], Room(self._limits)
        if self.view.kind.exclusive:
            taken += self.take_losses()
        if self._next is not None:
            change, self._next = self._next, None
            self.note(change)
        return taken

    def take_losses(self) -> list[Change]:
        """As much of what goes away as fits into one response; the rest stays in `losses`."""
        room = Room(self._limits)
        taken = list(takewhile(room.takes, self.losses))
        del self.losses[: len(taken)]
        return taken
