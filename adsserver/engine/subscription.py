"""What a client is subscribed to, and how each variant's requests change it (protocol.md section C).

One value for both variants; only the reading of a request differs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdscore.names import XDSTP
from xdscore.resource_types import ResourceType
from xdscore.xdstp import Glob, Place, glob_of, place_of

WILDCARD = "*"
# What else a name costs while it is asked for: places in sets and dicts, what its client was told, an error's text. Of
# 10,000 names these are 200 bytes each where they are short, and 480 where they are long.
_NAME_BYTES = 300


@dataclass(frozen=True, slots=True)
class Subscription:
    """What may be sent.

    `names` are the explicit ones, `globs` those of them that name a collection (H3); `wildcard` is whether "everything"
    is asked for. `named_once`: a name list of this type was not empty on this stream, after which an empty one means
    "none" and no longer "everything" (C2). `name_bytes`: the memory of the names, which nobody but this stream has.
    """

    wildcard: bool = False
    names: frozenset[str] = frozenset()
    named_once: bool = False
    globs: frozenset[Glob] = frozenset()
    name_bytes: int = field(default=0, compare=False)
    _by_place: Mapping[Place, Sequence[Glob]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Names are looked up in this: a client may ask for thousands of collections.
        by_place: dict[Place, list[Glob]] = {}
        for glob in self.globs:
            by_place.setdefault(glob.place, []).append(glob)
        object.__setattr__(self, "_by_place", by_place)

    @property
    def empty(self) -> bool:
        """Whether nothing may be sent at all (I5)."""
        return not self.wildcard and not self.names

    def covers(self, name: str) -> bool:
        """Whether a resource of this name may be sent."""
        return self.wildcard or name in self.names or self.in_collection(name)

    def explains(self, name: str) -> bool:
        """Whether an error entry may have this name: never under a wildcard alone (F4)."""
        return name in self.names or self.in_collection(name)

    def in_collection(self, name: str) -> bool:
        """Whether `name` is that of a member of a collection asked for."""
        return bool(self._by_place) and place_of(name) in self._by_place

    def collections_of(self, name: str) -> Sequence[Glob]:
        """The collections asked for that have a resource of this name as a member."""
        place = place_of(name)
        return self._by_place.get(place, ()) if place is not None else ()


def listed(kind: ResourceType, current: Subscription, names: tuple[str, ...]) -> Subscription:
    """The subscription after a SotW request with this full list of names (C1, C2, C4, C10)."""
    if not names:
        # C2: legacy wildcard, only where the type has one and no name was ever given on this stream.
        return Subscription(kind.wildcard and not current.named_once, frozenset(), current.named_once)
    wildcard = kind.wildcard and WILDCARD in names
    return _changed(current, wildcard, _plain(names), named_once=True)


def is_listed(kind: ResourceType, current: Subscription, names: tuple[str, ...]) -> bool:
    """Whether `listed` would change nothing, as after every ACK: found without making a subscription."""
    if not names:
        return not current.names and current.wildcard == (kind.wildcard and not current.named_once)
    wildcard = kind.wildcard and WILDCARD in names
    return current.named_once and current.wildcard == wildcard and current.names == _plain(names)


def legacy_wildcard(kind: ResourceType) -> Subscription:
    """The subscription after a first delta request of a type with both lists empty (C5)."""
    return Subscription(wildcard=kind.wildcard)


def edited(
    kind: ResourceType, current: Subscription, subscribe: tuple[str, ...], unsubscribe: tuple[str, ...]
) -> Subscription:
    """The subscription after a delta request.

    Subscribe first, then unsubscribe (C5); only "*" itself ends a wildcard (C4).
    """
    wildcard = current.wildcard or (kind.wildcard and WILDCARD in subscribe)
    if WILDCARD in unsubscribe:
        wildcard = False
    names = (current.names | _plain(subscribe)) - frozenset(unsubscribe)
    return _changed(current, wildcard, names, named_once=current.named_once or bool(subscribe))


def subscription_to(wildcard: bool, names: frozenset[str], *, named_once: bool) -> Subscription:
    """A subscription to these names, and those of them that are globs."""
    return _changed(Subscription(), wildcard, names, named_once=named_once)


def memory_of(names: Collection[str]) -> int:
    """What a stream that asks for these names takes for them, in bytes: of short ones that is mostly not their text."""
    return sum(map(str.__sizeof__, names)) + _NAME_BYTES * len(names)


def _changed(current: Subscription, wildcard: bool, names: frozenset[str], *, named_once: bool) -> Subscription:
    if names == current.names:
        return Subscription(wildcard, current.names, named_once, current.globs, current.name_bytes)
    # What is counted of 10,000 names is what came and went.
    name_bytes = current.name_bytes + memory_of(names - current.names) - memory_of(current.names - names)
    globs = frozenset(glob for name in names if name.startswith(XDSTP) and (glob := glob_of(name)) is not None)
    return Subscription(wildcard, names, named_once, globs, name_bytes)


def _plain(names: Iterable[str]) -> frozenset[str]:
    # C10: "" is an unknown name that matches nothing; T8: neither it nor "*" ever gets an error entry.
    return frozenset(names) - {"", WILDCARD}
