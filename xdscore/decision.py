"""The one decision: what one audience gets for one name, or why not (architecture.md law 2).

The stream, the explain page, the API, the command line and the access simulator all call `decide`; nothing else says
NOT_FOUND or PERMISSION_DENIED. `client_view` is the same decision for all names of a type at once, for wildcards, and
`decide_collection` for those of a glob.

Where a rollout is open, each decides from the side that the audience is on (rollouts.md R3).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from xdscore.access import Audience, Effect
from xdscore.denials import Denied, Missing
from xdscore.names import canonical
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content, Served, Snapshot, WithheldName
from xdscore.xdstp import Glob

__all__ = [
    "Collection",
    "Decision",
    "Denied",
    "Missing",
    "Serve",
    "Undecided",
    "Withheld",
    "client_view",
    "decide",
    "decide_collection",
]


@dataclass(frozen=True, slots=True)
class Serve:
    """The decision that the audience gets this content. `fallback` is what a client gets instead after it refused this
    content: the last content that some client acknowledged (proven); None where there is none.
    """

    content: Content
    fallback: Content | None


@dataclass(frozen=True, slots=True)
class Withheld:
    """The decision that the name exists and is allowed, but nothing of it can be served until someone edits it
    (INTERNAL). `finding` says why, for the client's text.
    """

    finding: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """The decision that nothing can be said of the name now, which passes without an edit.

    A client that has nothing of the name is told UNAVAILABLE at most, never a data error (architecture.md law 3).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Collection:
    """The members of a glob collection that the audience may know of: `served` have content, `absent` have none for
    now.
    """

    served: tuple[str, ...]
    absent: tuple[str, ...]


Decision = Serve | Missing | Denied | Withheld | Undecided


def decide(audience: Audience, kind: ResourceType, name: str, snapshot: Snapshot | None) -> Decision:
    """What `audience` gets for `name`.

    Access is decided before existence: what is denied or hidden never reaches the question whether it exists, so that
    an absent name cannot be told from a refused one (protocol.md F16, reliability T11). Without a snapshot the answer
    is Undecided (reliability T6). The order of an xdstp name's context parameters means nothing (protocol.md H1).
    """
    if snapshot is None:
        return Undecided("no snapshot of this environment was loaded yet")
    if snapshot.candidate is not None:
        snapshot = snapshot.seen_by(audience)
    name = canonical(name)
    refused = snapshot.access.ruling(audience, kind, name).denial
    if refused is not None:
        return refused
    state = snapshot.type_state(kind)
    served = state.served.get(name)
    if served is not None:
        return Serve(served.content, served.proven)
    if (unread := state.unreadable.get(name)) is not None:
        return Undecided(unread)
    withheld = state.withheld.get(name)
    if withheld is not None:
        content = _let(audience, kind, name, withheld)
        return Withheld(withheld.reason) if content is None else Serve(content, _fallback(withheld))
    return Missing(removed=name in state.removed)


def _let(audience: Audience, kind: ResourceType, name: str, withheld: WithheldName) -> Content | None:
    """The content of a withheld name that this audience gets all the same; None when it gets none. It gets the content
    where that is withheld only from other kinds of clients, or where it probes the name (protocol.md F18a).
    """
    content = withheld.content
    if content is None:
        return None
    probes = bool(audience.probes) and (kind.word, name, content.version) in audience.probes
    return content if probes or withheld.lets(audience.kind) else None


def _fallback(withheld: WithheldName) -> Content | None:
    """The withheld content, if it is withheld from some kinds of clients only: then others acknowledged it. Else
    None.
    """
    return withheld.content if withheld.kinds else None


def decide_collection(
    audience: Audience, kind: ResourceType, glob: Glob, snapshot: Snapshot
) -> Collection | Missing | Denied:
    """What `audience` gets for this glob collection (protocol.md F19).

    A rule may refuse the collection by its own name. A resource that the audience may not read is no member, because
    its existence would be told otherwise. A collection without members is Missing.
    """
    snapshot = snapshot.seen_by(audience)
    refused = snapshot.access.ruling(audience, kind, glob.name).denial
    if refused is not None:
        return refused
    state = snapshot.type_state(kind)

    ruling = snapshot.access.ruling
    served: list[str] = []
    absent: list[str] = []
    for name in sorted(state.at(glob.place)):
        if ruling(audience, kind, name).effect is not Effect.ALLOW:
            continue
        withheld = state.partly.get(name)
        let = withheld is not None and _let(audience, kind, name, withheld) is not None
        (served if let or name in state.served else absent).append(name)
    collection = Collection(tuple(served), tuple(absent))
    return collection if collection.served or collection.absent else Missing()


def client_view(audience: Audience, kind: ResourceType, snapshot: Snapshot) -> Mapping[str, Served]:
    """Every resource of a type that `audience` may read, by name: what a wildcard subscription contains (protocol.md
    C2).

    When the audience may read everything, this is the snapshot's own mapping. Names with the same rules are decided
    once.
    """
    snapshot = snapshot.seen_by(audience)
    state = snapshot.type_state(kind)
    allowed = _allowed(audience, kind, snapshot)
    let = {
        name: Served(content, _fallback(each))
        for name, each in state.partly.items()
        if (content := _let(audience, kind, name, each)) is not None
        and snapshot.access.ruling(audience, kind, name).effect is Effect.ALLOW
    }
    return {**allowed, **let} if let else allowed


def _allowed(audience: Audience, kind: ResourceType, snapshot: Snapshot) -> Mapping[str, Served]:
    """The served resources of this type that the access rules allow this audience, by name."""
    state, access = snapshot.type_state(kind), snapshot.access
    if access.unrestricted(audience, kind):
        return state.served
    permissions = access.permissions(audience, kind)
    view: dict[str, Served] = {}
    allow, of_row = Effect.ALLOW, permissions.of_row  # rows are thousands
    for numbers, entries in state.by_rules().items():
        if numbers is None:
            view |= {name: each for name, each in entries.items() if permissions.ruling(name).effect is allow}
        elif of_row(numbers).effect is allow:
            view |= entries
    return view
