"""Says what a build found: one finding per fact, about the resource it concerns (codes of range 20)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from controlplane.builder.stages.fallback import Cause, HeldBack, Resolution
from controlplane.catalog.references import MISSING, target_finding
from xdscore.codes import CATALOGUE, shown
from xdscore.findings import Finding, Severity
from xdscore.resource_types import by_word
from xdscore.snapshot import EntryKey

UNUSED = CATALOGUE["XDS2003"]
CLAIMED = CATALOGUE[Cause.CLAIMED.value]
FOREIGN = CATALOGUE["XDS2006"]
REJECTED = CATALOGUE[Cause.REJECTED.value]
FROM_KINDS = CATALOGUE["XDS5002"]
ENVOY = CATALOGUE[Cause.ENVOY.value]
NOT_CHECKED = CATALOGUE["XDS2008"]
TYPE = CATALOGUE[Cause.TYPE.value]

_COMPLAINT_CHARS = 400

Pointers = Mapping[tuple[EntryKey, EntryKey], str]
"""The JSON pointer of the place where one resource first names another, by the two."""


def findings_of_held(
    held: HeldBack, resolution: Resolution, environment: str, pointers: Pointers
) -> tuple[Finding, ...]:
    """The findings that say why this name is held back: one for each missing reference, or each claim it lost."""
    return tuple(each.about(*held.key) for each in _found_of_held(held, resolution, environment, pointers))


def other_findings(resolution: Resolution, environment: str, pointers: Pointers) -> Iterator[Finding]:
    """The findings about resources that are served as written; errors first, notes last."""
    held = {each.key for each in resolution.held}
    for key in sorted(resolution.references.missing.keys() - held):
        for each in _missing(key, resolution, environment, pointers):
            yield each.about(*key)
    for key, conflicts in sorted(resolution.shared.items()):
        for each in _claimed(conflicts, Severity.WARNING):
            yield each.about(*key)
    for key, targets in sorted(resolution.references.foreign.items()):
        for target in targets:
            yield target_finding(FOREIGN, target, environment, pointers.get((key, target), "")).about(*key)
    for key in resolution.references.unused:
        yield UNUSED.finding("", environment=environment).about(*key)


def refused_finding(text: str) -> Finding:
    """The finding with Envoy's complaint about a resource, which may be longer than values in findings usually are."""
    return replace(ENVOY.finding("", problem=""), detail=ENVOY.detail.format(problem=shown(text, _COMPLAINT_CHARS)))


def finding_counts(resolution: Resolution) -> Counter[str]:
    """The number of resources with findings of each code, also where `other_findings` and its reader stop early."""
    held = {each.key for each in resolution.held}
    counts = Counter(map(code_of, resolution.held))
    counts[MISSING.code] += len(resolution.references.missing.keys() - held)
    counts[CLAIMED.code] += len(resolution.shared)
    counts[FOREIGN.code] += len(resolution.references.foreign)
    counts[UNUSED.code] += resolution.references.unused_count
    return +counts


def code_of(held: HeldBack) -> str:
    """The code of the finding that says why this name is held back."""
    return FROM_KINDS.code if held.kinds else held.cause.value


def _found_of_held(held: HeldBack, resolution: Resolution, environment: str, pointers: Pointers) -> Iterator[Finding]:
    match held.cause:
        case Cause.REJECTED if held.kinds:
            yield FROM_KINDS.finding("", kinds=" and ".join(held.kinds))
        case Cause.REJECTED:
            yield REJECTED.finding("")
        case Cause.MISSING_REFERENCE:
            yield from _missing(held.key, resolution, environment, pointers)
        case Cause.CLAIMED:
            yield from _claimed(resolution.conflicts[held.key], Severity.ERROR)
        case Cause.ENVOY:
            yield refused_finding(resolution.refused[held.key])
        case Cause.TYPE:
            yield TYPE.finding("", problem=resolution.broken[held.key[0]])


def _missing(key: EntryKey, resolution: Resolution, environment: str, pointers: Pointers) -> Iterator[Finding]:
    for target in resolution.references.missing[key]:
        yield target_finding(MISSING, target, environment, pointers.get((key, target), ""))


def _claimed(conflicts: tuple[tuple[str, EntryKey], ...], severity: Severity) -> Iterator[Finding]:
    for claim, (word, name) in conflicts:
        found = CLAIMED.finding("", claim=claim, title=by_word[word].title, name=name)
        yield replace(found, severity=severity)
