"""What one environment serves at one epoch: an immutable value that the builder makes and every stream shares.

An epoch is a number within a lineage; (lineage, epoch) orders snapshots of an environment (decisions D5b). Nothing
in here is ever changed in place: a publish swaps one reference.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import MappingProxyType

from xdscore.access import AccessTable, Audience
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_word
from xdscore.sides import RolloutTable, Side, client_digest, side_of_digest
from xdscore.xdstp import Place, place_of

HASH_BYTES = 16
_MARK_BYTES = 12
# Of one withheld content no more clients that refused it are told apart, and once there are so many nobody probes it.
MAX_REFUSERS = 8
_VERSION_CHARS = 16
# Between the hash and the ttl of a version. No hash has such letters.
_TTL = "-ttl"
# A client may say that it holds a version with any number in it.
_MAX_TTL_DIGITS = 9
# A resource in a response: the field's tag and a length of at most four bytes (wire format of protobuf).
FRAME_BYTES = 5


def content_hash(data: bytes) -> bytes:
    """The address of stored bytes: their BLAKE2b-128 hash. Bytes are hashed as they are stored, never serialised anew
    (reliability finding 14).
    """
    return blake2b(data, digest_size=HASH_BYTES).digest()


def client_mark(client: ClientFacts) -> str:
    """A hash by which clients that refused content are told apart: of the verified identity, else of the node id."""
    who = f"identity {client.identity}" if client.verified else f"node {client.node_id}"
    return blake2b(who.encode("utf-8", "surrogatepass"), digest_size=_MARK_BYTES).hexdigest()


def content_version(address: bytes, ttl_ms: int = 0) -> str:
    """The version on the wire of the content whose bytes have this address. With a ttl it ends with that: who is sent
    another ttl is sent another version, and what a client holds says how long it holds it (protocol.md G1).
    """
    version = address.hex()[:_VERSION_CHARS]
    return f"{version}{_TTL}{ttl_ms}" if ttl_ms else version


def ttl_ms_of(version: str) -> int:
    """The ttl of content of this version, in milliseconds; 0 where it has none."""
    digits = version.partition(_TTL)[2]
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_TTL_DIGITS else 0


def ttl_text(ttl_ms: int) -> str:
    """A ttl as manifests have it, such as "1.5s"."""
    return f"{ttl_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"


def without_ttl(version: str) -> str:
    """The version that the same content has without a ttl."""
    return version.partition(_TTL)[0]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one revision.

    blob: the address (hash) of its bytes.
    version: its version on the wire (`version_info`), a hash of the content, keyed where the content is secret
      (decisions D18), and its ttl. It is equal on every replica and changes exactly when the content does (protocol.md
      B10).
    size: in bytes.
    eds_name: the name under which a cluster asks EDS for its endpoints; else empty.
    """

    blob: bytes
    version: str
    size: int
    eds_name: str = ""

    @property
    def ttl_ms(self) -> int:
        """How long a client keeps it after it was sent or renewed last, in milliseconds; 0: for ever."""
        return ttl_ms_of(self.version)


@dataclass(frozen=True, slots=True)
class Served:
    """What is served of a name. `proven` is the last content of the name that some client acknowledged; None where
    there is none.

    `rules` are the numbers of the access rules that match the name, in order, as the builder found them in the access
    table of the same snapshot; None: the builder did not look.
    """

    content: Content
    proven: Content | None = None
    rules: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class WithheldName:
    """A name that exists, but of which nothing can be served until someone edits it. `reason` ends the sentence that
    clients read.

    content: the withheld content, if some clients get it all the same (decisions C10, reliability N4, as amended in
      docs/reference/protocol.md, F18a).
    kinds: the content is withheld from these kinds of clients alone, which refuse it, because others acknowledged it;
      empty: from everybody.
    refusers: hashes (`client_mark`) of the clients that refused it. A client with another verified identity may be sent
      it as a probe.
    """

    reason: str
    content: Content | None = None
    kinds: tuple[str, ...] = ()
    refusers: tuple[str, ...] = ()

    def lets(self, kind: str) -> bool:
        """Whether clients of this kind get the withheld content, because it is withheld from other kinds only. ""
        stands for every kind that nothing is withheld from.
        """
        return self.content is not None and bool(self.kinds) and kind not in self.kinds


@dataclass(frozen=True, slots=True)
class RemovedName:
    """A name that was published in this environment once and is not any more."""


@dataclass(frozen=True, slots=True)
class UnreadableName:
    """A name whose content this process cannot read for now, for this `reason`. Never stored, because another process
    may be able to read it.
    """

    reason: str


Entry = Served | WithheldName | RemovedName
EntryKey = tuple[str, str]
"""(type word, resource name)."""


@dataclass(frozen=True, slots=True, eq=False)
class TypeState:
    """Everything a snapshot has of one type, by name.

    removed: names that were published once.
    unreadable: why this process cannot read a name's content.
    partly: those of the withheld names whose content some clients get.
    """

    kind: ResourceType
    served: Mapping[str, Served]
    withheld: Mapping[str, WithheldName]
    removed: frozenset[str]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    partly: Mapping[str, WithheldName] = field(init=False, repr=False)
    _by_rules: dict[tuple[int, ...] | None, dict[str, Served]] = field(default_factory=dict, init=False, repr=False)
    _by_place: list[Mapping[Place, Sequence[str]]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        partly = {name: entry for name, entry in self.withheld.items() if entry.content is not None}
        object.__setattr__(self, "partly", partly)

    def by_rules(self) -> Mapping[tuple[int, ...] | None, Mapping[str, Served]]:
        """The served resources, grouped by the access rules that match them (`Served.rules`); computed when first
        needed.
        """
        if not self._by_rules:
            found: dict[tuple[int, ...] | None, dict[str, Served]] = {}
            for name, entry in self.served.items():
                found.setdefault(entry.rules, {})[name] = entry
            # At once: threads may look at the same time.
            self._by_rules.update(found)
        return self._by_rules

    def at(self, place: Place) -> Sequence[str]:
        """The names of resources in this directory with this context (`xdstp.Place`), served or not. Computed for all
        places when first needed, because one client may ask for thousands of collections.
        """
        if not self._by_place:
            found: dict[Place, list[str]] = {}
            for name in self.served.keys() | self.withheld.keys() | self.unreadable.keys():
                if (where := place_of(name)) is not None:
                    found.setdefault(where, []).append(name)
            self._by_place.append(found)
        return self._by_place[0].get(place, ())

    def after(self, changes: "Mapping[str, Entry | None]") -> "TypeState":
        """A copy of this state in which these names have these entries. None stands for a name of which nothing is
        known any more.
        """
        served, withheld, removed = dict(self.served), dict(self.withheld), set(self.removed)
        for name, entry in changes.items():
            withheld.pop(name, None)
            removed.discard(name)
            match entry:
                case Served():
                    served[name] = entry
                    continue
                case WithheldName():
                    withheld[name] = entry
                case RemovedName():
                    removed.add(name)
            served.pop(name, None)
        unreadable = {name: reason for name, reason in self.unreadable.items() if name not in changes}
        state = TypeState(self.kind, served, withheld, frozenset(removed), unreadable)
        if self._by_rules:
            state._by_rules.update(self._by_rules_after(changes))
        return state

    def _by_rules_after(self, changes: "Mapping[str, Entry | None]") -> dict[tuple[int, ...] | None, dict[str, Served]]:
        now = {name: entry for name, entry in changes.items() if isinstance(entry, Served)}
        before = {name: self.served[name] for name in changes if name in self.served}
        touched = {entry.rules for entry in (*now.values(), *before.values())}
        rows = {rules: dict(self._by_rules.get(rules, {})) for rules in touched}
        for name, entry in before.items():
            del rows[entry.rules][name]
        for name, entry in now.items():
            rows[entry.rules][name] = entry
        return {rules: names for rules, names in (self._by_rules | rows).items() if names}


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything that one environment serves at one epoch. `types` has an item for every resource type, also for one of
    which there is nothing.

    `unknown`: the words of types in this snapshot that this version of Parley does not know and does not serve; a later
    version published them.
    `rollout`: who is on the candidate side of the open rollout; None where none is open. `candidate`: the snapshot that
    those clients are served from in place of this one, which is the stable side (rollouts.md R1, R2). `differing`: the
    names, by the words of their types, in which the candidate may differ.
    `kinds`: the kinds of clients from which some content is withheld. `audience` tells clients of these kinds apart
    from all others.
    """

    environment: str
    lineage: str
    epoch: int
    access: AccessTable
    types: Mapping[str, TypeState] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    rollout: RolloutTable | None = None
    candidate: "Snapshot | None" = None
    differing: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    kinds: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        partly = (entry for state in self.types.values() for entry in state.partly.values())
        object.__setattr__(self, "kinds", frozenset(kind for entry in partly for kind in entry.kinds))

    def audience(self, client: ClientFacts, digest: str = "") -> Audience:
        """The audience of this client by the access rules of this snapshot and its open rollout; with the client's
        kind, if content is withheld from that kind. `digest`: the client's `client_digest`, if the caller knows it.
        """
        audience, seen = self.access.audience(self.environment, client), self
        if self.rollout is not None:
            side = side_of_digest(self.rollout, digest or client_digest(self.environment, client), client)
            if side is Side.CANDIDATE:
                audience = replace(audience, side=side)
                seen = self.seen_by(audience)
        if not seen.kinds:
            return audience
        kind = str(client.kind)
        return replace(audience, kind=kind) if kind in seen.kinds else audience

    def seen_by(self, audience: Audience) -> "Snapshot":
        """The side of this snapshot that the audience is served from: its candidate, if there is one and the audience
        is on the candidate side; else the snapshot itself.
        """
        return self.candidate if self.candidate is not None and audience.side is Side.CANDIDATE else self

    def type_state(self, kind: ResourceType) -> TypeState:
        """Everything the snapshot has of one type."""
        return self.types[kind.word]


def snapshot_from_entries(
    *,
    environment: str,
    lineage: str,
    epoch: int,
    access: AccessTable,
    entries: Iterable[tuple[EntryKey, Entry | UnreadableName]],
) -> Snapshot:
    """A snapshot of these entries. Entries of unknown types are left out, and the others served (architecture.md law
    1).
    """
    served: dict[str, dict[str, Served]] = {kind.word: {} for kind in RESOURCE_TYPES}
    withheld: dict[str, dict[str, WithheldName]] = {kind.word: {} for kind in RESOURCE_TYPES}
    removed: dict[str, set[str]] = {kind.word: set() for kind in RESOURCE_TYPES}
    unreadable: dict[str, dict[str, str]] = {kind.word: {} for kind in RESOURCE_TYPES}
    unknown: set[str] = set()
    for (word, name), entry in entries:
        if word not in by_word:
            unknown.add(word)
            continue
        match entry:
            case Served():
                served[word][name] = entry
            case WithheldName():
                withheld[word][name] = entry
            case RemovedName():
                removed[word].add(name)
            case UnreadableName(reason=reason):
                unreadable[word][name] = reason
    types = {
        word: TypeState(kind, served[word], withheld[word], frozenset(removed[word]), unreadable[word])
        for word, kind in by_word.items()
    }
    return Snapshot(environment, lineage, epoch, access, types, frozenset(unknown))


def snapshot_after(
    before: Snapshot, *, lineage: str, epoch: int, access: AccessTable, changes: Mapping[EntryKey, Entry | None]
) -> Snapshot:
    """The snapshot that differs from `before` in these entries only; None stands for a name of which nothing is known
    any more. All must be of known types. A type without a change keeps its TypeState, so that the cost is that of the
    changes.
    """
    by_type: dict[str, dict[str, Entry | None]] = {}
    for (word, name), entry in changes.items():
        by_type.setdefault(word, {})[name] = entry
    types = {**before.types, **{word: before.types[word].after(names) for word, names in by_type.items()}}
    return Snapshot(before.environment, lineage, epoch, access, types, before.unknown)


def with_candidate(
    stable: Snapshot,
    table: RolloutTable,
    diff: Mapping[EntryKey, Entry | None],
    alike: Mapping[str, TypeState] = MappingProxyType({}),
) -> Snapshot:
    """The snapshot `stable` with an open rollout: `table` says who is on the candidate side, and the candidate differs
    from `stable` in the entries of `diff`; None stands for a name of which the candidate knows nothing. Entries of
    unknown types are left out.

    `alike`: states of types, by their words, that an earlier candidate has and that are as they would be in this one.
    They are taken over, so that their audiences' views stay.
    """
    unknown = frozenset(word for word, _ in diff if word not in by_word)
    changes = {key: entry for key, entry in diff.items() if key[0] in by_word and key[0] not in alike}
    candidate = snapshot_after(
        stable, lineage=stable.lineage, epoch=stable.epoch, access=stable.access, changes=changes
    )
    types = {**candidate.types, **alike}
    candidate = replace(candidate, types=types, unknown=candidate.unknown | unknown)
    differing: defaultdict[str, set[str]] = defaultdict(set)
    for word, name in diff:
        differing[word].add(name)
    names = {word: frozenset(some) for word, some in differing.items()}
    return replace(stable, rollout=table, candidate=candidate, differing=names)
