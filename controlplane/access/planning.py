"""What several wishes about rules and groups do together, or why they cannot be, all reasons at once. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from controlplane.access.checks import group_findings, rule_findings
from controlplane.access.choices import EditSubject
from controlplane.access.steps import AccessState, State, Step, called, group_of, rule_of
from controlplane.access.values import POSITION_FIRST, POSITION_STEP, GroupDraft, RuleDraft, RuleState, Wish
from controlplane.common.errors import Conflict
from xdscore.access import AccessTable, Effect
from xdscore.findings import Finding, Severity
from xdscore.limits import Limits

_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """What wishes do together: the `steps` that make a difference, those about rules that make room for others among
    them; or, in `findings`, every reason why it cannot be.

    `after`: all rules and groups after the steps. What is not stored yet has a number above all others there; `names`
    has what people call it, by subject and that number.
    """

    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]
    after: AccessState
    names: Mapping[tuple[EditSubject, int], str]

    def rule_called(self, number: int) -> str:
        """What people call the rule with this number in `after`."""
        return self.names.get((EditSubject.RULE, number), str(number))


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A wish, and the number that its rule or group has in the plan."""

    wish: Wish
    number: int

    @property
    def key(self) -> tuple[EditSubject, int]:
        return self.wish.subject, self.number


def access_planned(wishes: Sequence[Wish], now: AccessState, limits: Limits) -> AccessPlan:
    """What these wishes make of the rules and groups `now`."""
    numbered = _numbered(wishes, now)
    groups = [_step(each, now) for each in numbered if each.wish.subject is EditSubject.GROUP]
    rules = [_step(each, now) for each in numbered if each.wish.subject is EditSubject.RULE]
    followed = now.after(groups)
    there = followed.after(rules).rules
    placed = _placed(there)
    wished = {each.id for each in rules}
    rules = [replace(each, after=placed.get(each.id or 0)) for each in rules]
    rules += [
        Step(EditSubject.RULE, number, now.rules[number], state)
        for number, state in placed.items()
        if number not in wished and state != there[number]
    ]
    steps = (*groups, *rules)
    names = {each.key: each.wish.name for each in numbered if each.wish.id is None}
    after = now.after(steps)
    effective = (
        replace(each, id=None) if (each.subject, each.id) in names else each
        for each in steps
        if each.before != each.after
    )
    return AccessPlan(tuple(effective), tuple(_findings(numbered, now, after, limits)), after, names)


def wish_findings(
    wish: Wish, limits: Limits, *, environment: str, known: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Everything that is wrong with a rule or group that is wished for. `known`: the keys of the groups of which it may
    speak; None: any.
    """
    draft = wish.draft
    if isinstance(draft, RuleDraft):
        return rule_findings(draft, draft.client_groups if known is None else known, environment, limits)
    return group_findings(draft, limits) if isinstance(draft, GroupDraft) else ()


def said_of(wish: Wish, finding: Finding) -> Finding:
    """A copy of the finding that names the rule or group, and its place in what somebody sent."""
    return replace(finding, pointer=f"{wish.place}{finding.pointer}").about(wish.subject.value, wish.name)


def table_of(state: AccessState, default: Effect) -> AccessTable:
    """The table that these rules and groups make."""
    groups = sorted((group_of(each) for each in state.groups.values()), key=lambda each: each.key)
    rules = sorted(
        (RuleState(number, rule_of(each)) for number, each in state.rules.items()),
        key=lambda each: each.draft.position or 0,
    )
    return AccessTable(
        default, tuple(each.group for each in groups), tuple(each.rule for each in rules if each.draft.enabled)
    )


def _numbered(wishes: Sequence[Wish], now: AccessState) -> list[_Numbered]:
    new = {
        subject: count(1 + max((*rows, *(each.id or 0 for each in wishes if each.subject is subject)), default=0))
        for subject, rows in ((EditSubject.RULE, now.rules), (EditSubject.GROUP, now.groups))
    }
    return [_Numbered(each, each.id if each.id is not None else next(new[each.subject])) for each in wishes]


def _step(each: _Numbered, now: AccessState) -> Step:
    """What the wish does; a rule that names no position has the one that it has now, if any."""
    draft, before = each.wish.draft, now.state(*each.key)
    if isinstance(draft, RuleDraft) and draft.position is None and before is not None:
        draft = replace(draft, position=rule_of(before).position)
    return Step(*each.key, before, draft.as_json() if draft is not None else None)


def _placed(rules: Mapping[int, State]) -> Mapping[int, State]:
    """The rules with a free position for each that is to go before or behind all others. Where there is no room before
    the others, these move.
    """
    drafts = {number: rule_of(state) for number, state in rules.items()}
    first = [number for number, draft in drafts.items() if draft.position == POSITION_FIRST]
    last = [number for number, draft in drafts.items() if draft.position is None]
    found = {number: draft.position for number, draft in drafts.items() if draft.position}
    lowest = min(found.values(), default=POSITION_STEP * (len(first) + 1))
    if lowest > len(first):
        places = [lowest * place // (len(first) + 1) for place in range(1, len(first) + 1)]
    else:
        found = {number: position + POSITION_STEP * len(first) for number, position in found.items()}
        places = [lowest + POSITION_STEP * place for place in range(len(first))]
    found |= dict(zip(first, places, strict=True))
    highest = max(found.values(), default=0)
    found |= {number: highest + POSITION_STEP * place for place, number in enumerate(last, 1)}
    return {number: {**state, "position": found[number]} for number, state in rules.items()}


def _findings(numbered: Sequence[_Numbered], now: AccessState, after: AccessState, limits: Limits) -> Iterator[Finding]:
    for each in numbered:
        found = (
            *wish_findings(each.wish, limits, environment=now.environment, known=after.keys),
            *_clashes(each, now, after),
        )
        for said in found:
            yield said_of(each.wish, said)
    for nouns, before, rows, limit in (
        ("access rules", now.rules, after.rules, limits.rules_per_environment),
        ("client groups", now.groups, after.groups, limits.client_groups_per_environment),
    ):
        if len(rows) > max(limit, len(before)):
            yield _refused("", f"'{now.environment}' would have more {nouns} than the {limit:,} that are allowed.")


def _clashes(each: _Numbered, now: AccessState, after: AccessState) -> Iterator[Finding]:
    """Why a wish cannot be, for what the other rules and groups are."""
    subject, state, before = each.wish.subject, after.state(*each.key), now.state(*each.key)
    if subject is EditSubject.GROUP and state is None and before is not None:
        if rules := after.rules_for(before["key"]):
            numbers = ", ".join(str(number) for number in rules[:_NAMED])
            yield _refused("", f"Access rules speak of it: {numbers}. Change or delete them in the same change set.")
        return
    if state is None:
        return
    rows, member = (after.rules, "position") if subject is EditSubject.RULE else (after.groups, "key")
    holder = next((n for n, other in rows.items() if n != each.number and other[member] == state[member]), None)
    if holder is not None:
        yield _refused(
            f"/{member}", f"{called(subject, holder, rows[holder])} has the {member} {state[member]} already."
        )


def _refused(pointer: str, detail: str) -> Finding:
    return Finding(code=Conflict.code, severity=Severity.ERROR, pointer=pointer, detail=detail)
