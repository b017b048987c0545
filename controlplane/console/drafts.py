"""What somebody writes in the editor, before it is stored: what is wrong with it, and what storing it would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Principal
from controlplane.builder.deep.unasked import NotJudged, not_judged_of
from controlplane.catalog.guarding import Consent
from controlplane.catalog.link_trees import needs_of
from controlplane.catalog.links import LinkedName, used_by
from controlplane.catalog.manifests import manifest_of, manifest_of_parsed
from controlplane.catalog.reading import (
    Kept,
    ManifestsRead,
    manifest_limits,
    manifests_in,
    parsed_all,
    placed,
    puts_of,
)
from controlplane.catalog.selectors import resource_list, resource_row, resources_named
from controlplane.catalog.services import Terms, change_apply, change_plan
from controlplane.catalog.values import ChangeMade, Existing, Expectation, Put
from controlplane.common.errors import Conflict, InputInvalid, InputUnreadable, PreconditionFailed
from controlplane.console.several import MAX_DOCUMENTS, CheckedAll, Key, Replaced, check_several, replaced_by
from controlplane.explain.impact import Edited, Impact
from controlplane.explain.reach import Reach, impact_read, reach_of
from controlplane.incidents.refusals import NO_REFUSALS, OpenRefusal, refusals_of
from controlplane.status.selectors import standings_of
from controlplane.status.values import ResourceStatus, Status
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.resource_types import ResourceType
from xdscore.schema import Expected, Manifest, Media, ParsedResource, read_text
from xdscore.schema.differences import unified_text
from xdscore.snapshot import content_version


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to store as a resource, or as several in one change. `kind` and `name`: the stored resource that it is to
    replace; None and empty for a new one, whose type and name stand in the text. `kept`: contents from which secrets
    that it keeps are filled in before those that are stored. `replaces`: of a text of several, the stored resources
    that its writer means to write over, with the revision of each that they have seen.
    """

    environment: str
    text: str
    kind: ResourceType | None = None
    name: str = ""
    kept: Kept = field(default_factory=dict)
    replaces: Mapping[Key, int] = field(default_factory=dict)

    @property
    def own(self) -> Key | None:
        """The type and name of the stored resource that is edited; None for a new one."""
        return (self.kind.word, self.name) if self.kind is not None else None

    @property
    def expected(self) -> Expected:
        """The type and name that the text must have; any, for a new resource."""
        return Expected(*self.own) if self.own is not None else Expected()


@dataclass(frozen=True, slots=True)
class Checked:
    """A draft that can be stored, and what would come of it.

    `action`, `difference`: created, updated or nothing, and the unified difference of the manifests (empty: none).
    `reach`: which clients may read it.
    `impact`: which connected clients would be sent it or lose it.
    `needs`, `used_by`: the resources that it refers to, and those that refer to it.
    `not_judged`: that, and why, no Envoy has read it; empty where nothing would change.
    `status`: that of the stored revision with the same content; None where there is none.
    `refusal`: the clients that refuse this very content; None where there are none.
    """

    parsed: ParsedResource
    action: str
    difference: str
    findings: tuple[Finding, ...]
    reach: Reach
    impact: Impact
    needs: tuple[LinkedName, ...]
    used_by: tuple[LinkedName, ...]
    not_judged: tuple[NotJudged, ...] = ()
    status: ResourceStatus | None = None
    refusal: OpenRefusal | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing is known against the content of the draft: it is not in quarantine, held back or refused by
        clients.
        """
        return self.refusal is None and (self.status is None or self.status.status in _SOUND)


_SOUND: Final = frozenset({Status.PUBLISHED, Status.WAITING})


class NameTaken(Conflict):
    """A new resource has the name of a stored one, which is not overwritten without asking."""

    def __init__(self, draft: Draft, manifest: Manifest, parsed: ParsedResource, revision: int) -> None:
        self.kind, self.name, self.revision = parsed.type, parsed.name, revision
        word = parsed.type.word
        detail = f"There is a {word} '{shown(parsed.name)}' in '{draft.environment}' already, at revision r{revision}."
        finding = Finding(
            code=self.code,
            severity=Severity.ERROR,
            detail=detail,
            hint="Give the new one another name, or edit the one that is there.",
            resource_type=word,
            resource_name=parsed.name,
        )
        field = parsed.type.name_field if parsed.type.name_field in manifest.tree else "name"
        super().__init__("The name is taken. Nothing was changed.", findings=(manifest.located(finding, (field,)),))


def media_of_text(text: str) -> Media:
    """Whether a text is JSON or YAML: JSON begins with a bracket or a brace, everything else is YAML."""
    return Media.JSON if text.lstrip()[:1] in ("{", "[") else Media.YAML


def manifests_of_text(text: str) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """The manifests in a text, and findings about what was left out. Raises InputUnreadable and InputInvalid."""
    media = media_of_text(text)
    read = read_text(text.encode("utf-8", "replace"), media, manifest_limits())
    if read.findings:
        raise InputUnreadable(f"The text is not {media.title}. Nothing was changed.", findings=read.findings)
    return manifests_in(read.documents)


def draft_check(draft: Draft, *, owner: str, actor: Principal) -> Checked | CheckedAll:
    """What storing the draft would do, without storing it. `owner`: that it gets; empty: its owner stays. Raises
    Forbidden, InputUnreadable and InputInvalid with every finding, Conflict, NameTaken for a new resource, and
    NamesTaken for a text of several.
    """
    manifests, read = _read(draft)
    edits = puts_of(read)
    replaced = _refuse_taken(draft, manifests, read)
    if len(manifests) > 1:
        with placed(manifests, read):
            return check_several(draft.environment, read, edits, owner=owner, actor=actor, replaced=replaced)
    parsed = read.parsed[0]
    with placed(manifests, read):
        planned = change_plan(environment_key=draft.environment, edits=edits, asker=actor, terms=Terms(owner or None))
    key = (parsed.type.word, parsed.name)
    before = dict(resources_named(environment_key=draft.environment, keys=[key])).get(key)
    old = manifest_of(before) if before is not None else None
    difference = unified_text(f"{parsed.type.word}/{parsed.name}", old, manifest_of_parsed(parsed))
    reach = reach_of(environment_key=draft.environment, kind=parsed.type, name=parsed.name)
    action = planned.edits[0].action if planned.edits else "unchanged"
    edited = [Edited(*key, deleted=False)] if planned.edits else []
    impact = impact_read(environment_key=draft.environment, edits=edited)
    standing = None if planned.edits else standings_of(environment_key=draft.environment, keys=[key]).get(key)
    versions = {key: content_version(parsed.content_hash, parsed.ttl_ms)}
    refusals = refusals_of(environment_key=draft.environment, versions=versions).get(key, NO_REFUSALS)
    return Checked(
        parsed,
        action,
        difference,
        (*read.findings, *planned.findings, *secret_findings(environment_key=draft.environment, edits=planned.edits)),
        reach,
        impact,
        needs_of(environment_key=draft.environment, parsed=parsed),
        used_by(environment_key=draft.environment, kind=parsed.type, name=parsed.name),
        not_judged_of(planned, read.parsed),
        standing.status if standing is not None else None,
        refusals.current,
    )


def draft_save(
    draft: Draft,
    *,
    expect: Expectation,
    message: str,
    owner: str | None,
    actor: Principal,
    request_id: str,
    consent: Consent,
) -> ChangeMade:
    """Store the draft as a change, under the condition `expect`. Raises what `change_apply` raises, its findings with
    lines of the text, NameTaken for a new resource, and NamesTaken for a text of several.
    """
    manifests, read = _read(draft)
    edits = _puts(draft, read, expect)
    try:
        with placed(manifests, read):
            return change_apply(
                environment_key=draft.environment,
                edits=edits,
                actor=actor,
                message=message,
                terms=Terms(owner),
                request_id=request_id,
                consent=consent,
            )
    except PreconditionFailed:
        _refuse_taken(draft, manifests, read)
        raise


def draft_edits(draft: Draft, *, expect: Expectation) -> tuple[Put, ...]:
    """The edits for which the draft stands, for a change set. Raises InputUnreadable and InputInvalid with every
    finding, NameTaken for a new resource, and NamesTaken for a text of several.
    """
    manifests, read = _read(draft)
    edits = _puts(draft, read, expect)
    _refuse_taken(draft, manifests, read)
    return edits


def _read(draft: Draft) -> tuple[tuple[Manifest, ...], ManifestsRead]:
    """The manifests of the draft, and what was read of them. Raises InputInvalid where there are too many, or none of
    several is the resource that is edited.
    """
    manifests, _notes = manifests_of_text(draft.text)
    if len(manifests) > MAX_DOCUMENTS:
        raise InputInvalid(
            f"The text holds {len(manifests)} resources; the editor takes {MAX_DOCUMENTS}. Import more at once. "
            "Nothing was changed."
        )
    several = len(manifests) > 1
    expected = Expected() if several else draft.expected
    read = parsed_all(manifests, environment_key=draft.environment, expected=expected, kept=draft.kept)
    own = draft.own
    if several and not read.refused and own is not None and own not in {_key(each) for each in read.parsed}:
        raise InputInvalid(
            f"None of the {len(manifests)} resources in the text is the {own[0]} '{shown(own[1])}', which is edited "
            "here. Nothing was changed."
        )
    return manifests, read


def _puts(draft: Draft, read: ManifestsRead, expect: Expectation) -> tuple[Put, ...]:
    """The edits of the draft. `expect`: the condition of the resource that is edited; beside it, in a text of several,
    what is not to be replaced must not be there.
    """
    edits = puts_of(read, expect=expect)
    if len(edits) == 1:
        return edits
    own = draft.own
    return tuple(each if _key(each.parsed) == own else replace(each, expect=_beside(draft, each)) for each in edits)


def _key(parsed: ParsedResource) -> Key:
    return parsed.type.word, parsed.name


def _beside(draft: Draft, edit: Put) -> Expectation:
    seen = draft.replaces.get(_key(edit.parsed))
    return Existing.ABSENT if seen is None else frozenset({seen})


def _refuse_taken(draft: Draft, manifests: Sequence[Manifest], read: ManifestsRead) -> tuple[Replaced, ...]:
    """The stored resources beside the edited one that the draft replaces. Raises NameTaken and NamesTaken."""
    if len(manifests) > 1:
        return replaced_by(draft.environment, manifests, read.parsed, draft.replaces, draft.own)
    manifest, parsed = manifests[0], read.parsed[0]
    if draft.kind is not None:
        return ()
    there = resource_list(environment_key=draft.environment, kind=parsed.type).filter(name=parsed.name).first()
    if there is not None:
        raise NameTaken(draft, manifest, parsed, resource_row(there).revision)
    return ()
