"""What goes into and comes out of the services of access: values, no rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from controlplane.access.choices import EditAction, EditSubject
from controlplane.catalog.guarding import NOTHING_LOST, Loss
from xdscore.access import Effect, Rule
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.findings import Finding


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """A client group as an operator writes it, before it has an id."""

    key: str
    matchers: tuple[Selector, ...]
    trust: Trust

    @property
    def group(self) -> ClientGroup:
        """The client group as the access table matches clients with it."""
        return ClientGroup(self.key, self.matchers, self.trust)

    def as_json(self) -> dict[str, object]:
        """The group as a JSON object, in the spelling of the API and of the history."""
        matchers = [matcher.as_json() for matcher in self.matchers]
        return {"key": self.key, "matchers": matchers, "trust": self.trust.value}


@dataclass(frozen=True, slots=True)
class GroupState:
    """A client group that is stored, with its id."""

    id: int
    draft: GroupDraft


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """An access rule as an operator writes it, before it has an id. `position` None: behind all others."""

    effect: Effect
    pattern: str
    position: int | None = None
    client_groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    message: str = ""
    enabled: bool = True

    def as_json(self) -> dict[str, object]:
        """The rule as a JSON object, in the spelling of the API and of the history."""
        return {
            "position": self.position,
            "client_groups": list(self.client_groups),
            "types": list(self.types),
            "pattern": self.pattern,
            "effect": self.effect.value,
            "message": self.message,
            "enabled": self.enabled,
        }


@dataclass(frozen=True, slots=True)
class RuleState:
    """An access rule that is stored. Its id is the number by which people, explanations and results call it."""

    id: int
    draft: RuleDraft

    @property
    def rule(self) -> Rule:
        """The rule as the access table applies it."""
        draft = self.draft
        groups, types = frozenset(draft.client_groups), frozenset(draft.types)
        return Rule(self.id, draft.effect, draft.pattern, groups, types, draft.message)


@dataclass(frozen=True, slots=True)
class Case:
    """An expectation of the rules: which effect (allow or deny) a client meets for a name, whether or not the name
    exists.
    """

    client: ClientFacts
    type: str
    name: str
    expect: Effect


@dataclass(frozen=True, slots=True)
class SavedCase:
    """A saved case, tried at every change of the rules; a change that breaks a blocking one is refused."""

    id: int
    case: Case
    blocking: bool


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of trying a case: the effect, and the number of the rule that decided it (0: the environment's
    default).
    """

    case: Case
    effect: Effect
    rule: int
    message: str

    @property
    def ok(self) -> bool:
        """Whether the rules have the effect that the case expects."""
        return self.effect is self.case.expect


@dataclass(frozen=True, slots=True)
class AccessWritten:
    """The result of a write: the rule or group as it is now (after a deletion: as it was), the change that was made
    (empty when nothing had to change, and for a dry run), the findings about all rules, and the loss of connected
    clients.
    """

    id: int
    row: Mapping[str, object]
    change_id: str
    findings: tuple[Finding, ...] = field(default=())
    loss: Loss = NOTHING_LOST


@dataclass(frozen=True, slots=True)
class EditDone:
    """One entry of the history: which change did what to which rule or group, when and by whom."""

    change_id: str
    author: str
    principal: str
    at: datetime
    subject: EditSubject
    subject_id: int
    action: EditAction
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
