"""What goes into and comes out of the services of access: values, no rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from controlplane.access.choices import EditAction, EditSubject
from controlplane.catalog.guarding import NOTHING_LOST, Loss
from xdscore.access import Effect, Rule
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.findings import Finding

POSITION_STEP: Final = 10
"""Between two rules that are added behind each other, so that others fit between them."""
POSITION_FIRST: Final = 0
"""Stands in a wish for whichever position is before all other rules; no rule that is stored has it."""


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """A client group as an operator writes it, before it has an id. `trust`: whether facts count that a client merely
    says of itself.
    """

    key: str
    matchers: tuple[Selector, ...]
    trust: Trust

    @property
    def group(self) -> ClientGroup:
        """The client group in the form in which an access table matches clients."""
        return ClientGroup(self.key, self.matchers, self.trust)

    def as_json(self) -> dict[str, object]:
        """The group as a JSON object, as the API answers it and the history stores it."""
        matchers = [matcher.as_json() for matcher in self.matchers]
        return {"key": self.key, "matchers": matchers, "trust": self.trust.value}


@dataclass(frozen=True, slots=True)
class GroupState:
    """A client group that is stored, with its id."""

    id: int
    draft: GroupDraft


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """An access rule as an operator writes it, before it has an id.

    `position`: its place among the rules; None: behind all others.
    `client_groups`: the keys of the groups that it is for; empty: everybody.
    `types`: the words of the types that it is about; empty: every type. Only a rule that names the type allows secrets.
    `message`: a text for clients that the rule refuses.
    """

    effect: Effect
    pattern: str
    position: int | None = None
    client_groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    message: str = ""
    enabled: bool = True

    @property
    def normal(self) -> "RuleDraft":
        """A copy with its groups and types sorted, each once, so that drafts that mean the same are equal."""
        groups, types = tuple(sorted(set(self.client_groups))), tuple(sorted(set(self.types)))
        return replace(self, client_groups=groups, types=types)

    def as_json(self) -> dict[str, object]:
        """The rule as a JSON object, as the API answers it and the history stores it."""
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
    """An access rule that is stored. Its id is also the number by which people and explanations call it."""

    id: int
    draft: RuleDraft

    @property
    def rule(self) -> Rule:
        """The rule in the form in which an access table applies it."""
        draft = self.draft
        groups, types = frozenset(draft.client_groups), frozenset(draft.types)
        return Rule(self.id, draft.effect, draft.pattern, groups, types, draft.message)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to become of one rule or group, before it is written.

    `id`: its row id; None: it is to be made. `draft`: what it is to be; None: it is to be deleted.
    `name`: what people call it: the number of a rule, the key of a group, and `new-1` for the first rule to be made.
    `place`: a JSON pointer to it in what somebody sent, with which the pointers of findings begin.
    """

    subject: EditSubject
    name: str
    id: int | None
    draft: RuleDraft | GroupDraft | None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What somebody expects of the access rules: the effect `expect` for this client and this name, whether or not a
    resource has the name.
    """

    client: ClientFacts
    type: str
    name: str
    expect: Effect


@dataclass(frozen=True, slots=True)
class SavedCase:
    """A saved case, which is tried at every change of the rules. `blocking`: a change that breaks it is refused."""

    id: int
    case: Case
    blocking: bool


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of trying a case: the effect that the rules have, the number of the rule that decided (0: the
    environment's default did), and that rule's message for clients.
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
    """The result of a write of access.

    `id`, `row`: the rule or group as it is now, as JSON; after a deletion, as it was.
    `change_id`: the change that was made; empty for a dry run, and where nothing had to change.
    `findings`: about all rules of the environment.
    `loss`: what connected clients lose.
    """

    id: int
    row: Mapping[str, object]
    change_id: str
    findings: tuple[Finding, ...] = field(default=())
    loss: Loss = NOTHING_LOST


@dataclass(frozen=True, slots=True)
class EditDone:
    """One entry of the history of access: what a change did to a rule or group, when, and by whom. `before` and `after`
    are its JSON form; None where it did not exist.
    """

    change_id: str
    author: str
    principal: str
    at: datetime
    subject: EditSubject
    subject_id: int
    action: EditAction
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
