"""What goes into and comes out of the catalogue's services: values, no rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum

from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import DEFAULT_THRESHOLD, NOTHING_LOST, Loss, LossThreshold
from xdscore.access import Effect
from xdscore.environment_choice import Selector
from xdscore.findings import Finding, Severity
from xdscore.resource_types import ResourceType
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy
from xdscore.schema.parse import ParsedResource


class Existing(Enum):
    """The condition that a write sets on the stored resource, when it does not name revisions."""

    ANY = "any"
    ABSENT = "absent"  # If-None-Match: *
    PRESENT = "present"  # If-Match: *


Expectation = Existing | frozenset[int]
"""The condition that a write sets on the stored resource: anything, nothing, something, or one of these revision
numbers (If-Match).
"""


@dataclass(frozen=True, slots=True)
class Put:
    """Make this the resource's content. `owner`: the resource's owner, where that is another than the whole write's."""

    parsed: ParsedResource
    expect: Expectation = Existing.ANY
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the resource. `missing_ok`: deleting what does not exist does nothing, rather than being an error."""

    kind: ResourceType
    name: str
    expect: Expectation = Existing.ANY
    missing_ok: bool = False


Edit = Put | Delete


def edit_key(edit: Edit) -> tuple[str, str]:
    """The (type word, name) of the resource that an edit is about."""
    match edit:
        case Put(parsed=parsed):
            return parsed.type.word, parsed.name
        case Delete(kind=kind, name=name):
            return kind.word, name


@dataclass(frozen=True, slots=True)
class EditedResource:
    """The result of an edit of one resource; `revision` is the number of the new revision."""

    type: str
    name: str
    action: str  # created, updated, deleted
    revision: int


@dataclass(frozen=True, slots=True)
class ChangeMade:
    """The result of a write: a change, or none when everything was already as asked."""

    environment: str
    change_id: str  # empty when nothing changed
    generation: int
    edits: tuple[EditedResource, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    loss: Loss = NOTHING_LOST

    @property
    def changed(self) -> bool:
        """Whether the write changed anything."""
        return self.change_id != ""


@dataclass(frozen=True, slots=True)
class ChangePlanned:
    """What a write would do: the result of a dry run."""

    environment: str
    edits: tuple[EditedResource, ...] = ()
    findings: tuple[Finding, ...] = ()
    loss: Loss = NOTHING_LOST


@dataclass(frozen=True, slots=True)
class ResourceContent:
    """A resource as it is stored now, with its bytes: the serialised Any; a secret's are plaintext only for whoever may
    redact them.
    """

    environment: str
    kind: ResourceType
    name: str
    revision: int
    owner: str
    address: str
    any_bytes: bytes
    ttl_ms: int
    findings: tuple[Finding, ...]
    updated_at: datetime


def finding_to_json(finding: Finding) -> dict[str, object]:
    """The finding as a JSON object, in the form of the API and the database."""
    return asdict(finding) | {"severity": finding.severity.value}


def finding_from_json(data: Mapping[str, object]) -> Finding:
    """The finding that `finding_to_json` wrote."""
    values = dict(data)
    severity = Severity(str(values.pop("severity")))
    return Finding(severity=severity, **values)  # type: ignore[arg-type]  # written by finding_to_json


@dataclass(frozen=True, slots=True)
class EnvironmentPolicy:
    """The settings of an environment, which operators decide (interfaces.md section 4). `hold`: why resource changes
    are stopped, or empty. `node_ids`: see xdscore.environment_choice.EnvironmentChoice. `content`: what becomes of resources
    that bring code or reach into the proxy's machine. `deep_validation`: whether an Envoy reads what is about to be
    served. `require_if_match`: whether a write of one resource has to say which revision it was made from (decisions
    C25). `loss_threshold`: from how many losing clients on a write is refused until whoever writes says that they mean
    it.
    """

    selectors: tuple[Selector, ...] = ()
    node_ids: tuple[str, ...] = ()
    default_effect: Effect = Effect.DENY
    quarantine: QuarantinePolicy = QuarantinePolicy.SUGGEST
    hold: str = ""
    content: ContentPolicy = DEFAULT_POLICY
    deep_validation: bool = False
    require_if_match: bool = False
    loss_threshold: LossThreshold = DEFAULT_THRESHOLD


@dataclass(frozen=True, slots=True)
class ProvenContent:
    """A version of a resource that a client acknowledged in a response."""

    environment: str
    word: str
    name: str
    version: str
