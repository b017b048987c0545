"""Several resources in one text of the editor: what each of its documents would do, and what is wrong with which."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Principal
from controlplane.builder.deep.unasked import NotJudged, not_judged_of
from controlplane.catalog.differences import ResourceDifference
from controlplane.catalog.guarding import Loss
from controlplane.catalog.manifests import manifest_of, manifest_of_parsed
from controlplane.catalog.reading import ManifestsRead
from controlplane.catalog.selectors import resource_list, resource_row, resources_named
from controlplane.catalog.services import Terms, change_plan
from controlplane.catalog.values import Put
from controlplane.common.errors import Conflict
from controlplane.explain.impact import Edited, Impact
from controlplane.explain.reach import impact_read
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.resource_types import by_url, by_word
from xdscore.schema import Manifest, ParsedResource
from xdscore.schema.wrapper import open_wrapper

MAX_DOCUMENTS: Final = 100
"""Of more there is an import."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Replaced:
    """A stored resource, at this revision, that a text would write over. `chosen`: its writer said that it is meant."""

    word: str
    name: str
    revision: int
    chosen: bool = False

    @property
    def value(self) -> str:
        """The value of the box by which it is chosen."""
        return f"{self.word}/{self.revision}/{self.name}"


def replaced_of(values: Iterable[str]) -> dict[Key, int]:
    """The resources for which these boxes stand, with the revision of each; what is no such value is left out."""
    parts = (each.split("/", 2) for each in list(values)[:MAX_DOCUMENTS])
    return {
        (word, name): int(number)
        for word, number, name in (each for each in parts if len(each) == 3)
        if word in by_word and number.isascii() and number.isdigit() and len(number) < 10
    }


@dataclass(frozen=True, slots=True)
class Document:
    """One resource of a text. `line`: where it begins; `difference`: None where nothing would change, or nothing is
    known; `findings`: what is said of it.
    """

    number: int
    word: str
    name: str
    line: int
    findings: tuple[Finding, ...]
    difference: ResourceDifference | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether this resource keeps the text from being stored."""
        return any(each.severity is Severity.ERROR for each in self.findings)


@dataclass(frozen=True, slots=True)
class CheckedAll:
    """Several resources that can be stored as one change, and what would come of it. `replaced`: those that are there
    and would be written over.
    """

    count: int
    differences: Mapping[Key, ResourceDifference]
    findings: tuple[Finding, ...]
    loss: Loss
    impact: Impact
    not_judged: tuple[NotJudged, ...]
    replaced: tuple[Replaced, ...] = ()


class NamesTaken(Conflict):
    """Resources of a text have the names of stored ones, which are not overwritten without asking."""

    def __init__(self, taken: Collection[Replaced], findings: Sequence[Finding]) -> None:
        self.replaced = tuple(taken)
        count = sum(not each.chosen for each in taken)
        said = "1 resource of the text is" if count == 1 else f"{count} resources of the text are"
        super().__init__(
            f"{said} there already. Choose below what is to be replaced, or give it another name. Nothing was changed.",
            findings=tuple(findings),
        )


def replaced_by(
    environment_key: str,
    manifests: Sequence[Manifest],
    parsed: Sequence[ParsedResource],
    chosen: Mapping[Key, int],
    own: Key | None,
) -> tuple[Replaced, ...]:
    """The stored resources that these would write over, but for `own`, which is being edited. Raises NamesTaken unless
    each is among those chosen, at the revision that it has.
    """
    wanted = {(each.type.word, each.name): manifest for each, manifest in zip(parsed, manifests, strict=True)}
    rows = resource_list(environment_key=environment_key).filter(name__in=sorted({name for _, name in wanted}))
    there = {(row.type, row.name): resource_row(row).revision for row in rows}
    found = [Replaced(*key, there[key], chosen.get(key) == there[key]) for key in wanted if key in there and key != own]
    findings = [_taken(environment_key, each, wanted[each.word, each.name]) for each in found if not each.chosen]
    if findings:
        raise NamesTaken(found, findings)
    return tuple(found)


def _taken(environment_key: str, each: Replaced, manifest: Manifest) -> Finding:
    finding = Finding(
        code=Conflict.code,
        severity=Severity.ERROR,
        detail=f"There is a {each.word} '{shown(each.name)}' in '{environment_key}' already, at revision "
        f"r{each.revision}.",
        hint="Choose it to be replaced, or give this one another name.",
        resource_type=each.word,
        resource_name=each.name,
    )
    field = by_word[each.word].name_field
    return manifest.located(finding, (field if field in manifest.tree else "name",))


def check_several(
    environment_key: str,
    read: ManifestsRead,
    edits: Sequence[Put],
    *,
    owner: str,
    actor: Principal,
    replaced: tuple[Replaced, ...],
) -> CheckedAll:
    """What storing these edits as one change would do. Raises what `change_plan` raises."""
    planned = change_plan(environment_key=environment_key, edits=edits, asker=actor, terms=Terms(owner or None))
    after = {(each.type.word, each.name): manifest_of_parsed(each) for each in read.parsed}
    keys = [(each.type, each.name) for each in planned.edits]
    before = {key: manifest_of(found) for key, found in resources_named(environment_key=environment_key, keys=keys)}
    closed = secret_findings(environment_key=environment_key, edits=planned.edits)
    return CheckedAll(
        len(keys),
        {key: ResourceDifference(key, before.get(key), after.get(key)) for key in keys},
        tuple(dict.fromkeys((*read.findings, *planned.findings, *closed))),
        planned.loss,
        impact_read(environment_key=environment_key, edits=[Edited(*key, deleted=False) for key in keys]),
        not_judged_of(planned, read.parsed),
        replaced,
    )


def documents_of(
    manifests: Sequence[Manifest], findings: Sequence[Finding], differences: Mapping[Key, ResourceDifference]
) -> tuple[tuple[Document, ...], tuple[Finding, ...]]:
    """The resources of a text with what is said of each, by line or by name; and what is said of none of them."""
    begins = [each.place_of(())[1] for each in manifests]
    keys = [_key(each) for each in manifests]
    said: list[list[Finding]] = [[] for _ in manifests]
    others: list[Finding] = []
    for finding in findings:
        key = (finding.resource_type, finding.resource_name)
        above = [place for place, line in enumerate(begins) if 0 < line <= finding.line]
        place = above[-1] if above else keys.index(key) if key in keys else None
        (others if place is None else said[place]).append(finding)
    documents = tuple(
        Document(place + 1, *keys[place], begins[place], tuple(said[place]), differences.get(keys[place]))
        for place in range(len(manifests))
    )
    return documents, tuple(others)


def _key(manifest: Manifest) -> Key:
    envelope = open_wrapper(manifest.tree)
    kind = by_url.get(str(envelope.tree.get("@type")))
    name = envelope.name or (envelope.tree.get(kind.name_field) if kind is not None else "")
    return (kind.word if kind is not None else "", name if isinstance(name, str) else "")
