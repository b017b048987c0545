"""The trail of one request: the rungs so far, what was chosen, and what was not judged."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Never, TypeVar, cast

from xdscore.routing.values import Answer, ClusterShare, Endpoint, Given, Key, Lost, Place, Rung, State, Traced
from xdscore.schema.positions import Path

T = TypeVar("T")

MAX_LOST: Final = 200
"""So many candidates of one choice are told; of others only how many there were."""


class Ended(Exception):
    """The way of the request ends here, with this answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.value)
        self.answer = answer


class Trail:
    """What is known so far of the way of a request. `tells_lost`: why others lost is asked, too; where it is not, their
    sentences need not be made.
    """

    def __init__(self, *, tells_lost: bool = True) -> None:
        self.tells_lost = tells_lost
        self.rungs: list[Rung] = []
        self.listener = self.filter_chain = self.route = self.virtual_host = self.route_name = ""
        self.location = ""
        self.route_index: int | None = None
        self.status = 0
        self.shares: tuple[ClusterShare, ...] = ()
        self.endpoints: tuple[Endpoint, ...] = ()
        self._unsupported: dict[str, None] = {}
        self._made: dict[Key, dict[Path, object]] = {}

    def given(self, given: Mapping[Key, Given]) -> None:
        """Take note of what is kept of resources for the next request."""
        self._made |= {key: each.made for key, each in given.items() if each.made is not None}

    def made(self, place: Place, make: Callable[[], T]) -> T:
        """What follows from the part of a resource at `place`, by `make`; made once where the resource is kept. Of one
        place, one thing is made.
        """
        kept = self._made.get(place.key)
        if kept is None:
            return make()
        if place.path not in kept:
            kept[place.path] = make()
        return cast("T", kept[place.path])

    def chose(
        self, title: str, text: str, place: Place | None = None, lost: Iterable[Lost] = (), more: int = 0
    ) -> None:
        """Add a rung for a choice that was made."""
        self.rungs.append(Rung(title, State.OK, text, place, tuple(lost), more))

    def unjudged(self, place: Place) -> None:
        """Note a field that was not judged."""
        self._unsupported[str(place)] = None

    def refuse(
        self, title: str, text: str, place: Place | None = None, lost: Iterable[Lost] = (), more: int = 0
    ) -> Never:
        """End the way: nothing takes the request."""
        self.rungs.append(Rung(title, State.FAIL, text, place, tuple(lost), more))
        raise Ended(Answer.REFUSED)

    def give_up(
        self, title: str, text: str, place: Place | None = None, lost: Iterable[Lost] = (), more: int = 0
    ) -> Never:
        """End the way: what becomes of the request cannot be said."""
        self.rungs.append(Rung(title, State.UNKNOWN, text, place, tuple(lost), more))
        raise Ended(Answer.UNKNOWN)

    def traced(self, answer: Answer) -> Traced:
        """The answer, with all that was noted on the way."""
        return Traced(
            answer,
            tuple(self.rungs),
            tuple(self._unsupported),
            listener=self.listener,
            filter_chain=self.filter_chain,
            route=self.route,
            virtual_host=self.virtual_host,
            route_index=self.route_index,
            route_name=self.route_name,
            shares=self.shares,
            endpoints=self.endpoints,
            status=self.status,
            location=self.location,
        )
