"""What clients have, as sets that thousands of them share (truth.md H3).

Streams hand over what they rest on and what differs from that (`adsserver.engine.holdings`). Here equal ones become one
set with one id, at the cost of what differs: from the set before, when a view or a state follows another, and from what
a stream rests on, when some of its names do not.

Each (name, holding) has a mark, a number; the id of a set is made of the sum of its marks, as the version of a state is
(`adsserver.engine.versions`), so that a step of one name costs two additions. Marks depend on the installation's key:
clients choose names, and nobody may make up some whose set has the id of another's.

Used by the fact thread alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from adsserver.engine.body import Body
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import NamedContent, Respond
from adsserver.engine.holdings import BodyGround, Ground, Holdings, ViewGround, acknowledged, with_unanswered
from adsserver.engine.spelling import read_response
from adsserver.engine.told import Absent
from adsserver.store.recent import Recent
from controlplane.clients.facts import HASH_CHARS
from controlplane.clients.held_sets import HeldRow, is_short, pack_held
from xdscore.holdings import Holding

_MARK_BYTES: Final = HASH_CHARS // 2
_MODULUS: Final = 1 << (8 * _MARK_BYTES)
# Grounds of which the one before is remembered: as many audiences, types and subscriptions as environments have.
_MAX_GROUNDS: Final = 128
# Responses that many clients are slow to answer.
_MAX_STEPS: Final = 256
_MAX_ROWS: Final = 256

Lineage = tuple[object, ...]
"""What sets have in common that follow each other: the environment, the type, and what is asked for."""
Changes = Mapping[str, Holding | None]


class HeldSet:
    """What a client has of one type, by name: `base`, but for `changes` (None: it does not have the name).

    `id`: equal for equal sets of equal types. `marks`: the sum of the marks of all names. `count`: how many names it
    has.
    """

    __slots__ = ("base", "changes", "count", "id", "lineage", "marks")

    def __init__(
        self, lineage: Lineage, base: Mapping[str, Holding], changes: Changes, marks: int, count: int, held_id: str
    ) -> None:
        self.lineage = lineage
        self.base = base
        self.changes = changes
        self.marks = marks
        self.count = count
        self.id = held_id

    def get(self, name: str, default: Holding, /) -> Holding:
        """What the client has of this name; `default` where it has nothing."""
        return self.find(name) or default

    def find(self, name: str) -> Holding | None:
        """What the client has of this name; None for nothing."""
        return self.changes[name] if name in self.changes else self.base.get(name)

    def items(self) -> Iterator[tuple[str, Holding]]:
        """Each name and what the client has of it."""
        changes = self.changes
        for name, holding in self.base.items():
            if name not in changes:
                yield name, holding
        for name, changed in changes.items():
            if changed is not None:
                yield name, changed

    def changes_from(self, keyframe: "HeldSet") -> Changes:
        """What is to be changed of `keyframe` to make this set of it."""
        if keyframe.base is self.base:
            names = self.changes.keys() | keyframe.changes.keys()
        else:
            theirs = keyframe.base
            names = {name for name, holding in self.base.items() if theirs.get(name) is not holding}
            names |= theirs.keys() - self.base.keys() | self.changes.keys() | keyframe.changes.keys()
        found = ((name, self.find(name)) for name in names)
        return {name: holding for name, holding in found if holding != keyframe.find(name)}


class _Grounded(NamedTuple):
    """What a ground was made of, and the set that it became."""

    members: Mapping[str, NamedContent]
    others: Mapping[str, Holding]
    held: HeldSet


class HeldSets:
    """Makes sets of what streams report. `key`: a secret of the installation."""

    def __init__(self, key: str) -> None:
        self._key = blake2b(key.encode(), digest_size=32, person=b"parley held sets").digest()
        self._of_views: WeakKeyDictionary[ClientView, Recent[Lineage, _Grounded]] = WeakKeyDictionary()
        self._of_bodies: WeakKeyDictionary[Body, Recent[Lineage, _Grounded]] = WeakKeyDictionary()
        self._newest: Recent[Lineage, _Grounded] = Recent(_MAX_GROUNDS)
        self._keyframes: Recent[Lineage, HeldSet] = Recent(_MAX_GROUNDS)
        self._steps: Recent[tuple[object, ...], tuple[Respond, HeldSet]] = Recent(_MAX_STEPS)
        self._rows: Recent[str, tuple[HeldRow, ...]] = Recent(_MAX_ROWS)

    def held(self, environment: str, word: str, holdings: Holdings, unanswered: Sequence[Respond]) -> HeldSet:
        """What a client of this environment has of the type with this word, if it leaves these responses unanswered."""
        ground = holdings.ground
        held = self._changed(self._grounded(environment, word, ground).held, holdings.apart)
        for response in unanswered:
            held = self._sent(held, response, tells=ground.tells)
        return held

    def rows(self, held: HeldSet) -> tuple[HeldRow, ...]:
        """The rows that store this set: its own and, before it, that of its keyframe, if it has one."""
        known = self._rows.get(held.id)
        return known if known is not None else self._rows.put(held.id, self._packed(held))

    def _packed(self, held: HeldSet) -> tuple[HeldRow, ...]:
        keyframe = self._keyframes.get(held.lineage)
        if keyframe is not None and keyframe.id != held.id:
            changes = held.changes_from(keyframe)
            if is_short(len(changes), held.count):
                row = HeldRow(held.id, keyframe.id, held.count, pack_held(changes.items()))
                return (*self.rows(keyframe), row)
        self._keyframes.put(held.lineage, held)
        return (HeldRow(held.id, None, held.count, pack_held(held.items())),)

    def _grounded(self, environment: str, word: str, ground: Ground) -> _Grounded:
        match ground:
            case BodyGround(body, tells):
                return self._remembered(_of(self._of_bodies, body), (environment, word, tells), ground)
            case ViewGround(view, subscription, _, tells):
                lineage = (environment, word, tells, subscription)
                if isinstance(view, Absent):
                    return self._made(lineage, ground)
                return self._remembered(_of(self._of_views, view), (*lineage, view.audience), ground)

    def _remembered(self, known: Recent[Lineage, _Grounded], lineage: Lineage, ground: Ground) -> _Grounded:
        return known.get(lineage) or known.put(lineage, self._made(lineage, ground))

    def _made(self, lineage: Lineage, ground: Ground) -> _Grounded:
        members, others = ground.members(), ground.others()
        before = self._newest.get(lineage) or _Grounded({}, {}, self._set(lineage, {}, {}, 0, 0))
        theirs = before.members
        changes: dict[str, Holding | None] = {
            name: acknowledged(member.content.version)
            for name, member in members.items()
            if theirs.get(name) is not member
        }
        changes.update((name, None) for name in theirs.keys() - members.keys())
        changes.update((name, None) for name in before.others.keys() - others.keys() if name not in members)
        changes.update((name, holding) for name, holding in others.items() if before.others.get(name) != holding)
        changed = self._changed(before.held, changes)
        base = {name: holding for name, holding in {**before.held.base, **changes}.items() if holding is not None}
        held = self._set(lineage, base, {}, changed.marks, changed.count) if changed is not before.held else changed
        return self._newest.put(lineage, _Grounded(members, others, held))

    def _changed(self, held: HeldSet, changes: Changes) -> HeldSet:
        """The set with these changes made."""
        more: dict[str, Holding | None] = {}
        marks, count = held.marks, held.count
        for name, holding in changes.items():
            known = held.find(name)
            if known == holding:
                continue
            more[name] = holding
            if known is not None:
                marks, count = marks - self._mark(name, known), count - 1
            if holding is not None:
                marks, count = marks + self._mark(name, holding), count + 1
        if not more:
            return held
        return self._set(held.lineage, held.base, {**held.changes, **more}, marks, count)

    def _sent(self, held: HeldSet, response: Respond, *, tells: bool) -> HeldSet:
        # By identity: streams share what responses hold. The response is kept, so that the ids stay its own.
        key = (held.id, id(response.resources), response.errors, response.removed, tells)
        known = self._steps.get(key)
        if known is None:
            changes = with_unanswered(held, read_response(response), tells=tells)
            known = self._steps.put(key, (response, self._changed(held, changes)))
        return known[1]

    def _set(self, lineage: Lineage, base: Mapping[str, Holding], changes: Changes, marks: int, count: int) -> HeldSet:
        word = str(lineage[1])
        return HeldSet(lineage, base, changes, marks, count, f"{(marks + self._mark_of(word)) % _MODULUS:032x}")

    def _mark(self, name: str, holding: Holding) -> int:
        state, version, acked, code, message = holding
        # The lengths make the parts unambiguous, whatever characters a client put into a name.
        lengths = f"{len(name)}:{len(version)}:{len(acked)}:{len(code)}:{state}:"
        return self._mark_of(f"{lengths}{name}{version}{acked}{code}{message}")

    def _mark_of(self, text: str) -> int:
        data = text.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(data, digest_size=_MARK_BYTES, key=self._key).digest(), "big")


_Shown = TypeVar("_Shown", ClientView, Body)


def _of(grounds: WeakKeyDictionary[_Shown, Recent[Lineage, _Grounded]], shown: _Shown) -> Recent[Lineage, _Grounded]:
    """What was made of this view or state. Bounded: each client may ask for other names of it."""
    known = grounds.get(shown)
    if known is None:
        known = grounds[shown] = Recent(_MAX_GROUNDS)
    return known
