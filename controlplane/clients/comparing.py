"""Compares what a data plane says of itself with what Parley believes it has. Pure: facts in, differences out.

Content is compared where both sides show it, else the version; where neither can be, as with secrets that Envoy
redacts, that there is something under the name. Nothing is guessed: a name of which Parley knows nothing for sure, or
which moved a moment ago, is not compared.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from xdscore.names import XDSTP, canonical
from xdscore.said import NO_HOSTS, Said, SaidState
from xdscore.snapshot import EntryKey, without_ttl


class Belief(StrEnum):
    """What Parley believes that one client has of one name."""

    HAS = "has"  # it acknowledged what is published
    REFUSED = "refused"  # it refused what is published, and goes on with something else, or nothing
    LACKS = "lacks"  # it was told that it cannot have it, or that there is none
    UNSURE = "unsure"  # sent and not answered, or moved a moment ago: nothing to compare with


@dataclass(frozen=True, slots=True)
class Believed:
    """What Parley believes that a client has of a name.

    `version`: the version of the content on the wire.
    `endpoints`: a digest of the hosts, for an endpoint resource.
    `away`: whether the client has no open stream, so that the newest content may not have reached it.
    """

    belief: Belief
    version: str = ""
    endpoints: str = ""
    away: bool = False


class DifferenceKind(StrEnum):
    """How a client's report differs from what Parley believes of a name, in one word. `SENTENCES` has a sentence for
    each.
    """

    OTHER_CONTENT = "other_content"
    BEHIND = "behind"
    MISSING = "missing"
    REFUSES = "refuses"
    IN_ERROR = "in_error"
    NOT_IN_USE = "not_in_use"
    LEAVING = "leaving"
    KEEPS = "keeps"
    RUNS_REFUSED = "runs_refused"
    STATIC = "static"


# {said} and {believed} are how people call the two contents: a revision, a version, or "something".
SENTENCES: Final[Mapping[DifferenceKind, str]] = {
    DifferenceKind.OTHER_CONTENT: "It has {said}; Parley believes it has {believed}.",
    DifferenceKind.BEHIND: "It has {said}; {believed} is published, and it has no open stream to get it by.",
    DifferenceKind.MISSING: "It does not have it; Parley believes it has {believed}.",
    DifferenceKind.REFUSES: "It refuses an update and has {said}; Parley believes it took {believed}.",
    DifferenceKind.IN_ERROR: "It is in error and has {said}; Parley believes it has {believed}.",
    DifferenceKind.NOT_IN_USE: "It took {said} and does not use it yet: something that it needs is not there.",
    DifferenceKind.LEAVING: "It is taking {said} out of use; Parley believes it has {believed}.",
    DifferenceKind.KEEPS: "It has {said}; Parley believes it has none.",
    DifferenceKind.RUNS_REFUSED: "It uses {said}, which Parley believes it refused.",
    DifferenceKind.STATIC: "Its own bootstrap has one of this name, which goes before what Parley sends: {believed}.",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A name of which the client's report says something else than Parley believes. `said`: the entry of the report
    that differs; None where the report has no entry for the name.
    """

    kind: DifferenceKind
    type: str
    name: str
    believed: Believed
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a client's report with what Parley believes.

    `types`: the types that were compared.
    `differences`: the names that differ, by type and name; `compared` names were compared in all.
    `by_presence`: of how many only the presence could be compared, not the content.
    `unsure`: the names that were left out because Parley itself is not sure.
    """

    types: frozenset[str]
    differences: tuple[Difference, ...]
    compared: int
    by_presence: int
    unsure: frozenset[EntryKey]


def with_own_versions(said: Said) -> Said:
    """The report's entry with the version that the client itself gives the resource, for a delta stream, where each
    resource has one; in SotW it belongs to a whole response. An entry that shows its content is returned unchanged.
    """
    return said if said.version or said.endpoints else replace(said, version=said.version_info)


def compare(said: Iterable[Said], believed: Mapping[EntryKey, Believed], types: Collection[str]) -> Comparison:
    """Compare a client's report with what Parley believes of these types, name by name. Names in the report of which
    Parley believes nothing, such as those of another control plane, are left out.
    """
    by_name = _by_name(said, believed)
    differences: list[Difference] = []
    unsure: set[EntryKey] = set()
    compared = by_presence = 0
    for key, belief in sorted(believed.items(), key=lambda item: item[0]):
        if key[0] not in types:
            continue
        if belief.belief is Belief.UNSURE:
            unsure.add(key)
            continue
        compared += 1
        entries = by_name.get(key, [])
        found = _difference(key, belief, entries)
        if found is not None:
            differences.append(found)
        elif belief.belief is Belief.HAS and any(each.held and _same(each, belief) is None for each in entries):
            by_presence += 1
    return Comparison(frozenset(types), tuple(differences), compared, by_presence, frozenset(unsure))


def _by_name(said: Iterable[Said], believed: Mapping[EntryKey, Believed]) -> dict[EntryKey, list[Said]]:
    """The entries of a report by the names under which Parley sent them. Envoy reports the name inside of a resource,
    which may differ from the xdstp name it was sent under; then the content tells which resource it is.
    """
    found: dict[EntryKey, list[Said]] = {}
    for each in said:
        found.setdefault((each.type, canonical(each.name)), []).append(each)
    unsaid = [key for key in believed if key[1].startswith(XDSTP) and key not in found]
    if unsaid:
        by_content = {
            (key[0], without_ttl(each.version)): key
            for key, entries in found.items()
            for each in entries
            if each.version
        }
        for key in unsaid:
            inside = by_content.get((key[0], without_ttl(believed[key].version)))
            if inside in found:
                found[key] = found.pop(inside)
    return found


def _difference(key: EntryKey, believed: Believed, entries: list[Said]) -> Difference | None:
    def found(kind: DifferenceKind, said: Said | None) -> Difference:
        return Difference(kind, *key, believed, said)

    in_use = [each for each in entries if each.held and each.state not in _NOT_IN_USE]
    match believed.belief:
        case Belief.LACKS:
            # Envoy shows an assignment without hosts also for a cluster whose endpoints never came.
            kept = next((each for each in in_use if each.endpoints != NO_HOSTS), None)
            return found(DifferenceKind.KEEPS, kept) if kept is not None else None
        case Belief.REFUSED:
            used = (each for each in in_use if each.state is SaidState.ACKED)
            wrong = next((each for each in used if _same(each, believed)), None)
            return found(DifferenceKind.RUNS_REFUSED, wrong) if wrong is not None else None
        case _:
            if not in_use:
                return found(*_not_used(entries, believed))
            wrongs = (_wrong(each, entries, believed) for each in in_use)
            return next((found(*wrong) for wrong in wrongs if wrong is not None), None)


_NOT_IN_USE: Final = frozenset({SaidState.WARMING, SaidState.DRAINING, SaidState.STATIC})
_ERRORS: Final = frozenset({SaidState.RECEIVED_ERROR, SaidState.DOES_NOT_EXIST, SaidState.TIMEOUT})


def _wrong(said: Said, entries: list[Said], believed: Believed) -> tuple[DifferenceKind, Said] | None:
    """How the report differs where the client uses another content than Parley believes, and the entry that shows it;
    None where the content is the right one. `said`: the entry for the content in use.
    """
    if said.state is SaidState.NACKED:
        return DifferenceKind.REFUSES, said
    if _same(said, believed) is False:
        warming = (each for each in entries if each.state is SaidState.WARMING)
        newer = next((each for each in warming if _same(each, believed)), None)
        if newer is not None:
            return DifferenceKind.NOT_IN_USE, newer
        return DifferenceKind.BEHIND if believed.away else DifferenceKind.OTHER_CONTENT, said
    return (DifferenceKind.IN_ERROR, said) if said.state in _ERRORS else None


def _not_used(entries: list[Said], believed: Believed) -> tuple[DifferenceKind, Said | None]:
    """How the report differs where the client uses no content of a name that Parley believes it has, and the entry that
    shows it; None for the entry where the report has nothing of the name.
    """
    by_state = {each.state: each for each in reversed(entries)}
    for state, kind in (
        (SaidState.STATIC, DifferenceKind.STATIC),
        (SaidState.WARMING, DifferenceKind.NOT_IN_USE),
        (SaidState.DRAINING, DifferenceKind.LEAVING),
        (SaidState.NACKED, DifferenceKind.REFUSES),
        (SaidState.RECEIVED_ERROR, DifferenceKind.IN_ERROR),
        (SaidState.TIMEOUT, DifferenceKind.IN_ERROR),
    ):
        if state in by_state:
            return kind, by_state[state]
    return DifferenceKind.BEHIND if believed.away else DifferenceKind.MISSING, None


def _same(said: Said, believed: Believed) -> bool | None:
    """Whether the entry shows the content that Parley believes in; None where it shows no content to compare."""
    if said.version:
        # Content that is shown does not show its ttl.
        return said.version in {believed.version, without_ttl(believed.version)}
    if said.endpoints and believed.endpoints:
        return said.endpoints == believed.endpoints
    return None
