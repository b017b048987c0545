"""Finds the ends of many requests at once, and what of an environment each end follows from. Pure.

An end is a function of the request, of what the way asked for, and of the list of listeners, if the way looked at it:
`xdscore.routing.tracing` knows nothing else. So a change of other names cannot move it, new ones included: what the way
asks for and does not find is among its uses, too. Of endpoints an end says nothing; the way only needs that they exist.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, overload

from controlplane.routecases.values import CaseRun, RouteCaseDraft, end_of
from xdscore.environment_choice import ClientFacts
from xdscore.names import canonical
from xdscore.resource_types import ENDPOINT, LISTENER
from xdscore.routing.tracing import traced
from xdscore.routing.values import Given, Key, Traced

ANY_LISTENER: Final = f"{LISTENER.word} "
"""Among the uses of a way that looked at the list of listeners: it depends on each of them."""


class Written(Protocol):
    """What there is of each resource of an environment."""

    def listeners(self) -> Sequence[str]:
        """The names of all listeners, in order."""

    def load(self, keys: Collection[Key]) -> None:
        """Read these resources at once, since they are asked for next."""

    def given(self, key: Key, client: ClientFacts | None) -> Given:
        """What a client with these facts is given of the resource; None: whoever may read it."""


def use_of(key: Key) -> str:
    """How a resource stands in the uses of a case."""
    return f"{key[0]} {canonical(key[1])}"


def moved_by(puts: Mapping[Key, bytes | None], existed: Collection[Key]) -> frozenset[str]:
    """What a write makes otherwise, as it stands in the uses of cases. `puts`: what it writes, None for a deletion;
    `existed`: what of that there was before. Endpoints that there were and will be are as good as before.
    """
    moved: set[str] = set()
    for key, content in puts.items():
        if key[0] == LISTENER.word:
            moved.add(ANY_LISTENER)
        if key[0] != ENDPOINT.word or content is None or key not in existed:
            moved.add(use_of(key))
    return frozenset(moved)


def cases_walked(cases: Sequence[tuple[int | None, RouteCaseDraft]], written: Written) -> tuple[CaseRun, ...]:
    """The end of the request of each case, by what is written; in order. All ways go on together, so that what they
    need next is read at once.
    """
    walks = [_Walk(draft, written) for _, draft in cases]
    going = walks
    while going:
        written.load({key for walk in going for key in walk.wanted})
        going = [walk for walk in going if walk.step()]
    return tuple(
        CaseRun(number, draft, end_of(walk.found), walk.uses)
        for (number, draft), walk in zip(cases, walks, strict=True)
    )


class _Walk:
    """The way of one request, step by step."""

    def __init__(self, draft: RouteCaseDraft, written: Written) -> None:
        self._draft = draft
        self._written = written
        self._listing = _Listing(written)
        self._way: Generator[Sequence[Key], Mapping[Key, Given], Traced] = traced(
            draft.request,
            listener=draft.listener,
            listeners=() if draft.listener else self._listing,
            tells_lost=False,
        )
        self._used: set[Key] = set()
        self._found: Traced | None = None
        self.wanted: Sequence[Key] = next(self._way)

    def step(self) -> bool:
        """Go on to the next choice; whether there is one."""
        self._used.update(self.wanted)
        given = {key: self._written.given(key, self._draft.client) for key in self.wanted}
        try:
            self.wanted = self._way.send(given)
        except StopIteration as end:
            self._found = end.value
            return False
        return True

    @property
    def found(self) -> Traced:
        """The whole way, once there is no next choice."""
        if self._found is None:
            raise RuntimeError("the way is not at its end")
        return self._found

    @property
    def uses(self) -> frozenset[str]:
        """What the end follows from."""
        if not self._listing.looked_at:
            return frozenset(map(use_of, self._used))
        others: Iterable[Key] = (key for key in self._used if key[0] != LISTENER.word)
        return frozenset(map(use_of, others)) | {ANY_LISTENER}


class _Listing(Sequence[str]):
    """The names of all listeners, which notes whether anybody looked at them: only then do they matter."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self.looked_at = False

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._names[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    @property
    def _names(self) -> Sequence[str]:
        self.looked_at = True
        return self._written.listeners()
