"""What goes into and comes out of the catalogue's services: values; of rows only the change that a write made."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.freezes import Freeze
from controlplane.catalog.guarding import DEFAULT_THRESHOLD, NOTHING_LOST, Loss, LossThreshold
from controlplane.catalog.review import DEFAULT_REVIEW, ReviewSettings
from controlplane.catalog.rollout_settings import ROLLOUT_OFF, RolloutSettings
from xdscore.access import AccessTable, Effect
from xdscore.environment_choice import Selector
from xdscore.findings import Finding, Severity
from xdscore.labels import Labels
from xdscore.resource_types import ResourceType
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy
from xdscore.schema.parse import ParsedResource

if TYPE_CHECKING:
    from controlplane.catalog.marking import Marked
    from controlplane.catalog.models import Change


class Existing(Enum):
    """A condition of a write: whether the resource has to exist, must not exist, or may do either."""

    ANY = "any"
    ABSENT = "absent"  # If-None-Match: *
    PRESENT = "present"  # If-Match: *


Expectation = Existing | frozenset[int]
"""The condition that a write sets on the stored resource: anything, nothing, something, or one of these revision
numbers (If-Match).
"""


@dataclass(frozen=True, slots=True)
class Put:
    """An edit that stores `parsed`, under the condition `expect`. `owner`: the resource's owner, where that is not the
    owner of the whole write.
    """

    parsed: ParsedResource
    expect: Expectation = Existing.ANY
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """An edit that deletes a resource, under the condition `expect`. `missing_ok`: where the resource does not exist,
    do nothing; otherwise that is an error.
    """

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
    """What became of one edited resource: created, updated or deleted (`action`), and the number of the new
    revision. `findings`: the warnings and notes that are stored with it, where they were asked for.
    """

    type: str
    name: str
    action: str  # created, updated, deleted
    revision: int
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeMade:
    """The result of a write. `change`: the row of the change that it made, as it was stored; None where everything was
    already as asked.
    """

    environment: str
    change: "Change | None"
    generation: int
    edits: tuple[EditedResource, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    loss: Loss = NOTHING_LOST

    @property
    def changed(self) -> bool:
        """Whether the write changed anything."""
        return self.change is not None

    @property
    def change_id(self) -> str:
        """The public id of the change; empty where nothing changed."""
        return str(self.change.public_id) if self.change is not None else ""


@dataclass(frozen=True, slots=True)
class ChangePlanned:
    """The result of a dry run: what a write would do. `table`: the access rules after it; None where they stay.
    `broken`: how many blocking route cases would not hold any more.
    `marked`: whose owners and labels would become others.
    """

    environment: str
    edits: tuple[EditedResource, ...] = ()
    findings: tuple[Finding, ...] = ()
    loss: Loss = NOTHING_LOST
    table: AccessTable | None = None
    broken: int = 0
    marked: "tuple[Marked, ...]" = ()


@dataclass(frozen=True, slots=True)
class ResourceContent:
    """A stored revision of a resource with its content. `address`: the hash it is stored under. `any_bytes`: the
    serialised Any; of a secret, its plaintext, which only code that takes secrets out of texts may read. `labels`:
    those of the resource, where its newest revision was asked for.
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
    labels: Labels = field(default_factory=dict)


def finding_to_json(finding: Finding) -> dict[str, object]:
    """The finding as a JSON object, as the API answers and the database stores it."""
    return asdict(finding) | {"severity": finding.severity.value}


def finding_from_json(data: Mapping[str, object]) -> Finding:
    """The finding that is stored in this JSON object; reads what `finding_to_json` wrote."""
    values = dict(data)
    severity = Severity(str(values.pop("severity")))
    return Finding(severity=severity, **values)  # type: ignore[arg-type]  # written by finding_to_json


@dataclass(frozen=True, slots=True)
class EnvironmentPolicy:
    """The settings of an environment, which operators decide (interfaces.md section 4).

    `selectors`, `node_ids`: which clients the environment takes (`xdscore.environment_choice.EnvironmentChoice`).
    `default_effect`: what holds for a name that no access rule decides.
    `quarantine`: who may put refused revisions into quarantine.
    `hold`: why the environment is on hold; empty: it is not.
    `content`: what becomes of resources that bring code or reach into the proxy's machine.
    `deep_validation`: a real Envoy reads what is about to be served.
    `require_if_match`: a write of one resource has to say which revision it was made from (decisions C25).
    `loss_threshold`: how many clients must lose something by a write before it needs consent.
    `rollout`: whether changes reach all clients at once, or by a rollout.
    `freezes`: when it takes no changes.
    `review`: what it asks of those who change it.
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
    rollout: RolloutSettings = ROLLOUT_OFF
    freezes: tuple[Freeze, ...] = ()
    review: ReviewSettings = DEFAULT_REVIEW


@dataclass(frozen=True, slots=True)
class ProvenContent:
    """A version of a resource that a client acknowledged; `word` is the type's."""

    environment: str
    word: str
    name: str
    version: str
