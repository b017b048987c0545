"""What one audience may see of one type at one snapshot, and the way from one view to the next.

Views are shared by all streams of an audience, and so is everything computed from them: the sorted resources of a
wildcard, the resources of a name set, the errors, and the step from another view. The tuples keep their identity, so
that whoever writes them may share bytes (performance.md laws 2 and 3). Nothing in here belongs to a stream.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from adsserver.engine.body import Body, Overlay, body_of, marks_of
from adsserver.engine.events import NamedContent
from adsserver.engine.renewals import interval_s
from adsserver.engine.shared import Shared
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import ABSENT, Absent, Told
from adsserver.engine.versions import mark, version_text
from xdscore.access import Audience
from xdscore.decision import (
    Collection,
    Decision,
    Denied,
    Missing,
    Undecided,
    Withheld,
    client_view,
    decide,
    decide_collection,
)
from xdscore.errors import ResourceError, error_of
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content, Served, Snapshot
from xdscore.xdstp import Glob, glob_of

# Views are shared by thousands of streams with a handful of name sets each; beyond these many there is little left to
# share.
_MAX_BUNDLES = 128
_MAX_BODIES = 128
# Of a full state that is shared.
_MANY_ERRORS = 100
Explained = tuple[tuple[ResourceError, ...], int]
"""Errors of a full state, by name, and what they add to its version."""
_MAX_COLLECTIONS = 128
# What a member or an error adds to a response besides its bytes and name: tags, lengths, and a version of 32
# characters.
FRAMING_BYTES = 64
# Names without content that clients ask for; an error text is at most 300 characters.
_MAX_ERRORS = 4096
# As many marks take about 1 ms.
_FEW_CHANGES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The way from an earlier view (or from nothing) to this one, computed once for all streams that take it.

    `names`: whose content, withholding or removal differs. `all_names`: access rules differ, so any explicit name may
    be answered differently. `gains` and `losses`: what a pure wildcard subscription is sent and loses. `held`: its
    content of the gains before. `size`: bytes of `gains`, for splitting.
    """

    names: frozenset[str]
    all_names: bool
    gains: tuple[NamedContent, ...]
    losses: tuple[str, ...]
    held: Mapping[str, Content]
    size: int


class ClientView:
    """Everything that decides what is told about any name of this type to this audience.

    Immutable; its caches are bounded.
    """

    __slots__ = (
        "__weakref__",
        "_bodies",
        "_bundles",
        "_collections",
        "_errors",
        "_from_nothing",
        "_members",
        "_renewed",
        "_steps",
        "_total",
        "_version",
        "_versions",
        "audience",
        "expiring",
        "kind",
        "named",
        "served",
        "snapshot",
    )

    def __init__(
        self, audience: Audience, kind: ResourceType, snapshot: Snapshot, earlier: "ClientView | None"
    ) -> None:
        self.kind = kind
        self.audience = audience
        # Only this type: a view that outlives its snapshot must not keep the other types of it alive.
        self.snapshot = Snapshot(
            snapshot.environment,
            snapshot.lineage,
            snapshot.epoch,
            snapshot.access,
            {kind.word: snapshot.type_state(kind)},
        )
        # C2, F22: everything the audience may read; a name that is not served is simply not part of it.
        self.served: Mapping[str, Served] = client_view(audience, kind, self.snapshot)
        self.named: Mapping[str, NamedContent]
        # The names whose content has a ttl; mostly none.
        self.expiring: frozenset[str]
        self.named, self.expiring = _named(self.served, earlier)
        self._renewed: dict[int, tuple[str, ...]] | None = None
        self._members: tuple[NamedContent, ...] | None = None
        self._versions: dict[str, str] | None = None
        self._total = _total_after(earlier, self.named)
        self._version = ""
        self._errors: Shared[tuple[str, str], ResourceError] = Shared(_MAX_ERRORS)
        self._bundles: Shared[tuple[str, ...], tuple[NamedContent, ...]] = Shared(_MAX_BUNDLES)
        self._collections: Shared[Glob, Collection | Missing | Denied] = Shared(_MAX_COLLECTIONS)
        self._bodies: Shared[tuple[bool, frozenset[str], Overlay, str], Body] = Shared(_MAX_BODIES)
        self._steps: WeakKeyDictionary[ClientView, Step] = WeakKeyDictionary()
        self._from_nothing: Step | None = None

    def prepare(self) -> None:
        """Compute now what the first wildcard stream would otherwise wait for."""
        _ = self.members, self.versions, self.total, self.step_from(ABSENT)

    def rests_on(self, snapshot: Snapshot) -> bool:
        """Whether a view of this snapshot would be made of the very same as this one; costs nothing, often true."""
        same = self.snapshot.type_state(self.kind) is snapshot.type_state(self.kind)
        return same and self.snapshot.access.decides_alike(self.audience, snapshot.access, self.audience)

    def shows_the_same_as(self, other: "ClientView") -> bool:
        """Whether no stream of their audiences could be told anything different from the two."""
        mine, theirs = self.snapshot.type_state(self.kind), other.snapshot.type_state(self.kind)
        return (
            self._decides_as(other)
            and self.served == other.served
            and mine.withheld == theirs.withheld
            and mine.unreadable == theirs.unreadable
            and mine.removed == theirs.removed
        )

    @property
    def members(self) -> tuple[NamedContent, ...]:
        """What a wildcard contains, by name (equal order on every replica: reliability P6)."""
        if self._members is None:
            self._members = tuple(self.named[name] for name in sorted(self.named))
        return self._members

    @property
    def versions(self) -> Mapping[str, str]:
        """The version of every member, for comparison with what a reconnecting client says it holds (E5)."""
        if self._versions is None:
            self._versions = {name: member.content.version for name, member in self.named.items()}
        return self._versions

    @property
    def total(self) -> int:
        """The sum of the marks of all members, from which the version of the whole is made (B8)."""
        if self._total is None:
            self._total = sum(mark(name, member.content) for name, member in self.named.items())
        return self._total

    @property
    def known_total(self) -> int | None:
        """The sum of the marks of all members if it was computed before, else None."""
        return self._total

    @property
    def version(self) -> str:
        """The `version_info` of a response that holds all members."""
        if not self._version:
            self._version = version_text(self.total)
        return self._version

    @property
    def renewed(self) -> Mapping[int, tuple[str, ...]]:
        """The names whose content has a ttl, in order, by the interval at which it is renewed."""
        if self._renewed is None:
            found: dict[int, list[str]] = {}
            for name in sorted(self.expiring):
                found.setdefault(interval_s(self.named[name].content.ttl_ms), []).append(name)
            self._renewed = {interval: tuple(names) for interval, names in found.items()}
        return self._renewed

    def decision(self, name: str) -> Decision:
        """What the audience gets for this name, by the one decision (architecture.md law 2)."""
        return decide(self.audience, self.kind, name, self.snapshot)

    def collection(self, glob: Glob) -> Collection | Missing | Denied:
        """The members of this collection that the audience may read, or why there are none."""
        known = self._collections.get(glob)
        if known is not None:
            return known
        return self._collections.put(glob, decide_collection(self.audience, self.kind, glob, self.snapshot))

    def members_of(self, globs: Iterable[Glob]) -> set[str]:
        """The names of all members of these collections, also of those that are withheld."""
        names: set[str] = set()
        for collection in map(self.collection, globs):
            if isinstance(collection, Collection):
                names.update(collection.served, collection.absent)
        return names

    def shown(self, name: str, subscription: Subscription, public_url: str) -> Told:
        """What a stream that covers `name` is told: its content or, where it may be told (F4), why there is none."""
        member = self.named.get(name)
        if member is not None:
            return member.content
        if name in subscription.names:
            return self.error(name, public_url)
        if subscription.in_collection(name) and isinstance(self.decision(name), Withheld | Undecided):
            # F19: the problem of one member. That another name of the directory is absent or refused says nothing.
            return self.error(name, public_url)
        return ABSENT

    def farewell(self, name: str, subscription: Subscription, public_url: str) -> Told:
        """Why a member that the client was told of is none any more (F19, TP3).

        Nothing for who asks for the name itself, and where the collection is refused: its own entry says that of all
        its members. Not to be said to who was never told of the member: that another name is absent or refused is a
        secret (T11).
        """
        if name in self.named or name in subscription.names:
            return ABSENT
        collections = [self.collection(glob) for glob in subscription.collections_of(name)]
        if all(isinstance(each, Denied) or (isinstance(each, Missing) and each.hidden) for each in collections):
            return ABSENT
        return self.error(name, public_url)

    def error(self, name: str, public_url: str) -> Told:
        """Why there is no content for `name`; nothing for a collection that has members."""
        known = self._errors.get((name, public_url))
        if known is not None:
            return known
        glob = glob_of(name)
        decision = self.decision(name) if glob is None else self.collection(glob)
        if isinstance(decision, Collection):
            return ABSENT
        error = error_of(
            decision,
            kind=self.kind,
            name=name,
            environment=self.snapshot.environment,
            public_url=public_url,
        )
        if error is None:
            return ABSENT
        return self._errors.put((name, public_url), error)

    def proven(self, name: str) -> Content | Absent:
        """The last content of this name that any client acknowledged, where the audience may read the name at all."""
        served = self.served.get(name)
        return served.proven if served is not None and served.proven is not None else ABSENT

    @property
    def withholds_any(self) -> bool:
        """Whether any name of this type is withheld, from this audience or another."""
        return bool(self.snapshot.type_state(self.kind).withheld)

    def withheld_of(self, names: Container[str]) -> Iterator[str]:
        """The withheld ones of `names`: they exist and may be read, and there is nothing to serve to this audience."""
        state = self.snapshot.type_state(self.kind)
        return (name for name in state.withheld if name in names and isinstance(self.decision(name), Withheld))

    def withholds(self, name: str) -> bool:
        """Whether `name` is withheld: it exists and may be read, and there is nothing to serve to this audience."""
        return name in self.snapshot.type_state(self.kind).withheld and isinstance(self.decision(name), Withheld)

    def lets_go_gently(self, name: str) -> bool:
        """Whether a name that is no longer served may stay with a client until whatever refers to it is gone (I4, D14).

        Not where access ended: then not one more byte of it is sent (reliability S4).
        """
        match self.decision(name):
            case Missing(hidden=False) | Withheld() | Undecided():
                return True
            case _:
                return False

    def bundle(self, names: tuple[str, ...]) -> tuple[NamedContent, ...]:
        """The members of these names, in this order; the same tuple for all who ask for the same."""
        known = self._bundles.get(names)
        if known is not None:
            return known
        return self._bundles.put(names, tuple(self.named[name] for name in names))

    def lacking(self, subscription: Subscription) -> list[str]:
        """The names asked for that the view does not have, in order."""
        asked = subscription.names | self.members_of(subscription.globs)
        return sorted(name for name in asked if name not in self.named)

    def known_body(self, subscription: Subscription, overlay: Overlay, public_url: str) -> Body | None:
        """What `body` gave back to somebody who asked for the same, if it is remembered."""
        return self._bodies.get((subscription.wildcard, subscription.names, overlay, public_url))

    def body(
        self,
        subscription: Subscription,
        overlay: Overlay,
        public_url: str,
        explained: Explained | None = None,
    ) -> Body:
        """The full state of this subscription (D1), with `overlay` in place of what the client refused (D13).

        `explained`: why names asked for are not in the view, where that was put together before.
        """
        known = self.known_body(subscription, overlay, public_url)
        if known is not None:
            return known
        if explained is None:
            told = (self.error(name, public_url) for name in self.lacking(subscription))
            entries = tuple(error for error in told if isinstance(error, ResourceError))
            explained = entries, marks_of(entries)
        errors, marks = explained
        body = self._assemble(subscription, overlay, errors, marks)
        if len(errors) > _MANY_ERRORS:
            # Names that one client made up are for that client to keep.
            return body
        return self._bodies.put((subscription.wildcard, subscription.names, overlay, public_url), body)

    def step_from(self, earlier: "ClientView | Absent") -> Step:
        """What a client that was told `earlier`, or nothing at all, has to be told to be told this view."""
        if isinstance(earlier, Absent):
            if self._from_nothing is None:
                self._from_nothing = Step(frozenset(self.named), False, self.members, (), {}, _size(self.members))
            return self._from_nothing
        step = self._steps.get(earlier)
        if step is None:
            step = self._steps[earlier] = self._compare(earlier)
        return step

    def _assemble(
        self, subscription: Subscription, overlay: Overlay, errors: tuple[ResourceError, ...], marks: int
    ) -> Body:
        if subscription.wildcard and not overlay:
            return Body(self.members, self.named, errors, version_text(self.total + marks))
        asked = subscription.names | self.members_of(subscription.globs)
        names = self.named.keys() if subscription.wildcard else self.named.keys() & asked
        named = {name: self.named[name] for name in names}
        for name, stand_in in overlay:
            if isinstance(stand_in, Absent):
                # F17: the client refused it and nothing was ever proven; no entry is sent, the client knows why.
                named.pop(name, None)
            else:
                named[name] = NamedContent(name, stand_in)
        # F3: of what the client goes on with although it is withheld (F18a), there is no error in a full state.
        told = tuple(error for error in errors if error.name not in named)
        return body_of(named, told, marks if len(told) == len(errors) else None)

    def _compare(self, earlier: "ClientView") -> Step:
        gains = tuple(self.named[name] for name in sorted(_changed(self.named, earlier.named)))
        losses = tuple(sorted(earlier.named.keys() - self.named.keys()))
        now, before = self.snapshot.type_state(self.kind), earlier.snapshot.type_state(self.kind)
        names = (
            {member.name for member in gains}
            | set(losses)
            | {name for name, _ in now.withheld.items() ^ before.withheld.items()}
            | (now.unreadable.keys() ^ before.unreadable.keys())
            | (now.removed ^ before.removed)
        )
        held = {each.name: earlier.named[each.name].content for each in gains if each.name in earlier.named}
        return Step(frozenset(names), not self._decides_as(earlier), gains, losses, held, _size(gains))

    def _decides_as(self, other: "ClientView") -> bool:
        return self.snapshot.access.decides_alike(self.audience, other.snapshot.access, other.audience)


def _named(served: Mapping[str, Served], earlier: ClientView | None) -> tuple[dict[str, NamedContent], frozenset[str]]:
    """Each member once, an unchanged one as the earlier view's object; and the names of those with a ttl."""
    before = earlier.named if earlier is not None else {}
    named: dict[str, NamedContent] = {}
    changed: list[str] = []
    for name, entry in served.items():
        known = before.get(name)
        if known is None or (known.content is not entry.content and known.content != entry.content):
            known = NamedContent(name, entry.content)
            changed.append(name)
        named[name] = known
    expiring = frozenset(name for name in changed if named[name].content.ttl_ms)
    if earlier is not None and earlier.expiring:
        expiring |= (earlier.expiring & named.keys()).difference(changed)
    return named, expiring


def _total_after(earlier: ClientView | None, named: Mapping[str, NamedContent]) -> int | None:
    """The sum of marks, where an earlier view knows its own: it costs what differs, however large the state is.

    Not where much differs: then it is added up when somebody needs it.
    """
    if earlier is None or earlier.known_total is None:
        return None
    before = earlier.named
    new = _changed(named, before)
    if len(new) > _FEW_CHANGES:
        return None
    old = [name for name in new if name in before] + list(before.keys() - named.keys())
    added = sum(mark(name, named[name].content) for name in new)
    return earlier.known_total + added - sum(mark(name, before[name].content) for name in old)


def _changed(now: Mapping[str, NamedContent], before: Mapping[str, NamedContent]) -> list[str]:
    changed = []
    for name, member in now.items():
        known = before.get(name)
        if known is not member and (known is None or known.content.version != member.content.version):
            changed.append(name)
    return changed


def _size(members: tuple[NamedContent, ...]) -> int:
    return sum(member.content.size + len(member.name) + FRAMING_BYTES for member in members)
