"""A full state: what a SotW response of LDS, CDS or SRDS holds, where absence deletes (D1).

Bodies are shared by all streams that are shown the same; so is the transition from one to the next.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from adsserver.engine.events import NamedContent
from adsserver.engine.renewals import interval_s
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import Absent, same
from adsserver.engine.versions import mark, version_text
from xdscore.errors import ResourceError
from xdscore.snapshot import FRAME_BYTES, Content

Overlay = tuple[tuple[str, Content | Absent], ...]
"""By name: what stands in for content this client refused, or that the name is left out (D13)."""


class Body:
    """`resources` and `errors` by name, disjoint (F3), and the version that is a function of both."""

    __slots__ = ("__weakref__", "_interval_s", "_size", "_transitions", "errors", "named", "resources", "version")

    def __init__(
        self,
        resources: tuple[NamedContent, ...],
        named: Mapping[str, NamedContent],
        errors: tuple[ResourceError, ...],
        version: str,
    ) -> None:
        self.resources = resources
        self.named = named
        self.errors = errors
        self.version = version
        self._size: int | None = None
        self._interval_s: int | None = None
        self._transitions: WeakKeyDictionary[Body, Transition] = WeakKeyDictionary()

    @property
    def size(self) -> int:
        """The bytes of the resources of this state in a response, by which changes are judged (F24, decisions D17)."""
        if self._size is None:
            self._size = sum(member.content.size + FRAME_BYTES for member in self.resources)
        return self._size

    @property
    def interval_s(self) -> int:
        """How often the state is sent again so that nothing in it runs out, in seconds; 0: never, nothing has a ttl."""
        if self._interval_s is None:
            ttls = (ttl_ms for member in self.resources if (ttl_ms := member.content.ttl_ms))
            self._interval_s = min(map(interval_s, ttls), default=0)
        return self._interval_s

    def transition_from(self, told: "Body", lets_go_gently: Callable[[str], bool]) -> "Transition":
        """How a stream that was told `told` comes to this body; computed once for all that make this step.

        `lets_go_gently` says of a name in `told` alone whether it may stay a little longer. It is the view's, and so is
        the body.
        """
        transition = self._transitions.get(told)
        if transition is None:
            transition = self._transitions[told] = _transition(told, self, lets_go_gently)
        return transition

    def restricted_to(self, subscription: Subscription) -> "Body":
        """The part of this state that `subscription` covers; this very object when that is all of it."""
        # Asked at every ACK: under a wildcard nothing is left out, and the members are not gone through.
        everything = subscription.wildcard
        named = self.named if everything else {n: m for n, m in self.named.items() if subscription.covers(n)}
        errors = tuple(error for error in self.errors if subscription.explains(error.name))
        if len(named) == len(self.named) and len(errors) == len(self.errors):
            return self
        return body_of(named, errors)


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """A step from one body to another.

    `changed`: members that are new or have other content. `gentle`: the new body, still with the names it lets go
    (D14); the body itself when there are none.
    """

    changed: tuple[NamedContent, ...]
    gentle: Body


def body_of(named: Mapping[str, NamedContent], errors: tuple[ResourceError, ...], marks: int | None = None) -> Body:
    """A body of exactly these; `marks` of the errors, where they are known."""
    total = sum(mark(name, member.content) for name, member in named.items())
    total += marks_of(errors) if marks is None else marks
    return Body(tuple(named[name] for name in sorted(named)), named, errors, version_text(total))


def marks_of(errors: Iterable[ResourceError]) -> int:
    """The sum of the marks of these errors: what they add to the version of a state (B8)."""
    return sum(mark(error.name, error) for error in errors)


EMPTY_BODY = body_of({}, ())


def _transition(told: Body, new: Body, lets_go_gently: Callable[[str], bool]) -> Transition:
    changed = tuple(
        member
        for member in new.resources
        if (before := told.named.get(member.name)) is not member
        and (before is None or not same(before.content, member.content))
    )
    kept = [name for name in told.named.keys() - new.named.keys() if lets_go_gently(name)]
    if not kept:
        return Transition(changed, new)
    named = {**new.named, **{name: told.named[name] for name in kept}}
    errors = tuple(error for error in new.errors if error.name not in named)
    return Transition(changed, body_of(named, errors))
