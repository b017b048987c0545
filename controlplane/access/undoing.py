"""Taking back one change of access: what each rule and group becomes, or why it cannot, all reasons at once. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.access.checks import group_findings, rule_findings
from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.values import EditDone, GroupDraft, RuleDraft
from controlplane.catalog.undoing import Way, obstacle
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.findings import Finding
from xdscore.limits import Limits

State = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AccessNow:
    """The rules and groups of an environment as they are now, by id, in the JSON form of the history.

    `spoken_of`: for the id of a group, the ids of the rules for it. `changed_by`: for a rule or group written since the
    change to undo, the author and id of the last change that did.
    """

    environment: str
    rules: Mapping[int, State]
    groups: Mapping[int, State]
    spoken_of: Mapping[int, Sequence[int]] = field(default_factory=dict)
    changed_by: Mapping[tuple[EditSubject, int], tuple[str, str]] = field(default_factory=dict)

    def state(self, subject: EditSubject, number: int) -> State | None:
        """The JSON form of the rule or group with this id; None where there is none."""
        return (self.rules if subject is EditSubject.RULE else self.groups).get(number)


@dataclass(frozen=True, slots=True)
class Restored:
    """What undoing an edit makes of one rule or group: its JSON form `before` and `after` undoing; None where it does
    not exist.
    """

    subject: EditSubject
    id: int
    before: State | None
    after: State | None

    @property
    def action(self) -> EditAction:
        """Whether undoing the edit creates, updates or deletes the rule or group."""
        return action_of(self.before, self.after)

    @property
    def rule(self) -> RuleDraft | None:
        """The access rule as it is after undoing; None for a group, and where undoing deletes the rule."""
        return rule_of(self.after) if self.subject is EditSubject.RULE and self.after is not None else None

    @property
    def group(self) -> GroupDraft | None:
        """The client group as it is after undoing; None for a rule, and where undoing deletes the group."""
        return group_of(self.after) if self.subject is EditSubject.GROUP and self.after is not None else None

    @property
    def words(self) -> str:
        """The name of the rule or group in texts for people, such as "access rule 3"."""
        return _called(self.subject, self.id, self.after or self.before or {})

    @property
    def sentence(self) -> str:
        """A sentence that tells people what undoing does to the rule or group."""
        match self.action:
            case EditAction.CREATED:
                return f"{self.words} is there again."
            case EditAction.DELETED:
                return f"{self.words} is deleted."
            case EditAction.UPDATED:
                return f"{self.words} becomes what it was."


def action_of(before: State | None, after: State | None) -> EditAction:
    """Whether going from `before` to `after` creates, updates or deletes a rule or group; None where it does not
    exist.
    """
    if before is None:
        return EditAction.CREATED
    return EditAction.DELETED if after is None else EditAction.UPDATED


def restored_by(edits: Sequence[EditDone]) -> tuple[Restored, ...]:
    """For each edit of one change, the latest first, what undoing it makes of the rule or group."""
    return tuple(Restored(each.subject, each.subject_id, each.after, each.before) for each in reversed(edits))


def access_way(restored: Sequence[Restored], now: AccessNow, limits: Limits) -> Way:
    """How a change of rules and groups can be undone: what undoing does, and everything that stands in its way.
    `restored`: what undoing makes of each rule or group; `now`: what they are.
    """
    found = [finding for each in restored for finding in _own_obstacles(each, now, limits)]
    moved = [each for each in restored if now.state(each.subject, each.id) != each.before]
    since = (now.changed_by.get((each.subject, each.id), ("", ""))[1] for each in moved)
    return Way(
        tuple(each.sentence for each in restored),
        (*found, *_shared_obstacles(restored, now, limits)),
        tuple(dict.fromkeys(change for change in since if change)),
    )


def rule_of(state: State) -> RuleDraft:
    """The access rule that this JSON of the history describes; reads what `RuleDraft.as_json` wrote."""
    values: dict[str, Any] = dict(state)
    groups, types = tuple(values.pop("client_groups")), tuple(values.pop("types"))
    return RuleDraft(effect=Effect(values.pop("effect")), client_groups=groups, types=types, **values)


def group_of(state: State) -> GroupDraft:
    """The client group that this JSON of the history describes; reads what `GroupDraft.as_json` wrote."""
    matchers = tuple(Selector(**each) for each in state["matchers"])  # type: ignore[attr-defined]  # as_json
    return GroupDraft(str(state["key"]), matchers, Trust(state["trust"]))


def _own_obstacles(each: Restored, now: AccessNow, limits: Limits) -> Iterable[Finding]:
    current = now.state(each.subject, each.id)
    if current != each.before:
        yield _changed_since(each, now, current)
        return
    if each.subject is EditSubject.GROUP and each.after is None and (rules := now.spoken_of.get(each.id)):
        numbers = ", ".join(str(number) for number in rules[:10])
        yield obstacle(
            f"{each.words} cannot be deleted: access rules speak of it: {numbers}.",
            hint="Take the group out of those rules, or delete them, first.",
        )
    if (rule := each.rule) is not None:
        known = {str(state["key"]) for state in now.groups.values()}
        for said in rule_findings(rule, known, now.environment, limits):
            yield obstacle(f"{each.words} would not be taken today: {said.detail}", hint=said.hint)
    if (group := each.group) is not None:
        for said in group_findings(group, limits):
            yield obstacle(f"{each.words} would not be taken today: {said.detail}", hint=said.hint)


def _changed_since(each: Restored, now: AccessNow, current: State | None) -> Finding:
    became = "is gone" if current is None else "is there again" if each.before is None else "was changed again since"
    if (by := now.changed_by.get((each.subject, each.id))) is not None:
        author, change = by
        return obstacle(
            f"{each.words} {became}: by {author} in change {change[:8]}.",
            hint="Take that change back first, or write the rule or group you want under Access.",
        )
    return obstacle(
        f"{each.words} {became}: a client group it speaks of has another key now.",
        hint="Give the group its key again, or write the rule you want under Access.",
    )


def _shared_obstacles(restored: Sequence[Restored], now: AccessNow, limits: Limits) -> Iterable[Finding]:
    """Why these rules and groups cannot all come back together: a position or key is taken by another one, or there
    would be more than the limits allow.
    """
    for subject, there, limit, member in (
        (EditSubject.RULE, now.rules, limits.rules_per_environment, "position"),
        (EditSubject.GROUP, now.groups, limits.client_groups_per_environment, "key"),
    ):
        own = {each.id for each in restored if each.subject is subject}
        holders = {state[member]: number for number, state in there.items() if number not in own}
        back = [each for each in restored if each.subject is subject and each.after is not None]
        for each in back:
            after = each.after or {}
            if (holder := holders.get(after[member])) is not None:
                taken = _called(subject, holder, there[holder])
                yield obstacle(
                    f"{each.words} cannot have its {member} {after[member]} again: {taken} has it.",
                    hint=f"Give that one another {member} first.",
                )
        if len(holders) + len(back) > max(limit, len(there)):
            nouns = "access rules" if subject is EditSubject.RULE else "client groups"
            yield obstacle(f"'{now.environment}' would have more {nouns} than the {limit:,} that are allowed.")


def _called(subject: EditSubject, number: int, state: State) -> str:
    return f"Access rule {number}" if subject is EditSubject.RULE else f"Client group '{state.get('key', number)}'"
