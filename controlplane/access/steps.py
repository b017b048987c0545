"""What a write does to each rule and group: its state before and after, in the JSON form of the history. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.values import GroupDraft, RuleDraft
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.schema import Tree
from xdscore.schema.differences import unified_text

State = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Step:
    """What a write makes of one rule or group: its JSON form `before` and `after` the write; None where it does not
    exist. `id`: its row id; None: it gets one when it is stored.
    """

    subject: EditSubject
    id: int | None
    before: State | None
    after: State | None

    @property
    def row(self) -> int:
        """The row id. Raises RuntimeError where the rule or group is not stored yet."""
        if self.id is None:
            raise RuntimeError(f"{self.words} has no id yet")
        return self.id

    @property
    def action(self) -> EditAction:
        """Whether the write creates, updates or deletes the rule or group."""
        return action_of(self.before, self.after)

    @property
    def rule(self) -> RuleDraft | None:
        """The access rule as it is after the write; None for a group, and where the write deletes the rule."""
        return rule_of(self.after) if self.subject is EditSubject.RULE and self.after is not None else None

    @property
    def group(self) -> GroupDraft | None:
        """The client group as it is after the write; None for a rule, and where the write deletes the group."""
        return group_of(self.after) if self.subject is EditSubject.GROUP and self.after is not None else None

    @property
    def words(self) -> str:
        """The name of the rule or group in texts for people, such as "Access rule 3"."""
        return called(self.subject, self.id, self.after or self.before or {})


@dataclass(frozen=True, slots=True)
class AccessState:
    """All rules and groups of an environment at one time, by id, in the JSON form of the history."""

    environment: str
    rules: Mapping[int, State]
    groups: Mapping[int, State]

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the groups."""
        return frozenset(str(state["key"]) for state in self.groups.values())

    def state(self, subject: EditSubject, number: int | None) -> State | None:
        """The JSON form of the rule or group with this id; None where there is none."""
        rows = self.rules if subject is EditSubject.RULE else self.groups
        return rows.get(number) if number is not None else None

    def rules_for(self, key: object) -> tuple[int, ...]:
        """The ids of the rules that are for the group with this key."""
        return tuple(number for number, state in self.rules.items() if key in _groups_of(state))

    def after(self, steps: Iterable[Step]) -> "AccessState":
        """The rules and groups after these steps, all of which have ids. Rules that no step is about follow a group
        that gets another key.
        """
        steps = tuple(steps)
        of_rules, of_groups = _written(steps, EditSubject.RULE), _written(steps, EditSubject.GROUP)
        renamed = {
            self.groups[number]["key"]: state["key"]
            for number, state in of_groups.items()
            if state is not None and number in self.groups and self.groups[number]["key"] != state["key"]
        }
        followed = {number: _renamed(state, renamed) for number, state in self.rules.items()} if renamed else self.rules
        return AccessState(self.environment, _merged(followed, of_rules), _merged(self.groups, of_groups))


def _written(steps: Iterable[Step], subject: EditSubject) -> Mapping[int, State | None]:
    return {each.id: each.after for each in steps if each.subject is subject and each.id is not None}


def _merged(before: Mapping[int, State], written: Mapping[int, State | None]) -> Mapping[int, State]:
    return {number: state for number, state in {**before, **written}.items() if state is not None}


def _groups_of(state: State) -> list[str]:
    groups: list[str] = state["client_groups"]  # type: ignore[assignment]  # as_json
    return groups


def _renamed(state: State, renamed: Mapping[object, object]) -> State:
    return {**state, "client_groups": sorted(str(renamed.get(key, key)) for key in _groups_of(state))}


def action_of(before: State | None, after: State | None) -> EditAction:
    """Whether going from `before` to `after` creates, updates or deletes a rule or group; None where it does not
    exist.
    """
    if before is None:
        return EditAction.CREATED
    return EditAction.DELETED if after is None else EditAction.UPDATED


def rule_of(state: State) -> RuleDraft:
    """The access rule that this JSON of the history describes; reads what `RuleDraft.as_json` wrote."""
    values: dict[str, Any] = dict(state)
    groups, types = tuple(values.pop("client_groups")), tuple(values.pop("types"))
    return RuleDraft(effect=Effect(values.pop("effect")), client_groups=groups, types=types, **values)


def group_of(state: State) -> GroupDraft:
    """The client group that this JSON of the history describes; reads what `GroupDraft.as_json` wrote."""
    matchers = tuple(Selector(**each) for each in state["matchers"])  # type: ignore[attr-defined]  # as_json
    return GroupDraft(str(state["key"]), matchers, Trust(state["trust"]))


def called(subject: EditSubject, number: int | None, state: State) -> str:
    """The name of a rule or group in texts for people, at the beginning of a sentence."""
    if subject is EditSubject.GROUP:
        return f"Client group '{state.get('key', number)}'"
    return f"Access rule {number}" if number is not None else f"The new access rule for '{state.get('pattern', '')}'"


def access_text(label: str, before: State | None, after: State | None) -> str:
    """The unified difference between two states of a rule or group; None where it does not exist."""
    return unified_text(label, _tree(before), _tree(after))


def _tree(state: State | None) -> Tree:
    tree: Tree = json.loads(json.dumps(state))  # it is JSON, whoever made it
    return tree
