"""Taking back one change of access: what each rule and group becomes, or why it cannot, all reasons at once. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from controlplane.access.checks import group_findings, rule_findings
from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.steps import AccessState, Step, called
from controlplane.access.values import EditDone
from controlplane.catalog.undoing import Way, obstacle
from xdscore.findings import Finding
from xdscore.limits import Limits

Writers = Mapping[tuple[EditSubject, int], tuple[str, str]]
"""For each rule or group that was written since the change to undo: the author and id of the last change that did."""


def restored_by(edits: Sequence[EditDone]) -> tuple[Step, ...]:
    """For each edit of one change, the latest first, what undoing it makes of the rule or group."""
    return tuple(Step(each.subject, each.subject_id, each.after, each.before) for each in reversed(edits))


def access_way(restored: Sequence[Step], now: AccessState, changed_by: Writers, limits: Limits) -> Way:
    """How a change of rules and groups can be undone: what undoing does, and everything that stands in its way.
    `restored`: what undoing makes of each rule or group; `now`: what they are.
    """
    after = now.after(restored)
    found = [
        finding
        for each in restored
        for finding in (
            _obstacles(each, after, limits)
            if now.state(each.subject, each.id) == each.before
            else [_changed_since(each, now, changed_by)]
        )
    ]
    moved = [each for each in restored if now.state(each.subject, each.id) != each.before]
    since = (changed_by.get((each.subject, each.id or 0), ("", ""))[1] for each in moved)
    return Way(
        tuple(_sentence(each) for each in restored),
        (*found, *_shared_obstacles(restored, now, limits)),
        tuple(dict.fromkeys(change for change in since if change)),
    )


def _obstacles(each: Step, after: AccessState, limits: Limits) -> Iterable[Finding]:
    """Why one rule or group cannot become what it was. `after`: all rules and groups, were the change undone."""
    gone = each.before if each.subject is EditSubject.GROUP and each.after is None else None
    if gone is not None and (rules := after.rules_for(gone["key"])):
        numbers = ", ".join(str(number) for number in rules[:10])
        yield obstacle(
            f"{each.words} cannot be deleted: access rules speak of it: {numbers}.",
            hint="Take the group out of those rules, or delete them, first.",
        )
    if (rule := each.rule) is not None:
        for said in rule_findings(rule, after.keys, after.environment, limits):
            yield obstacle(f"{each.words} would not be taken today: {said.detail}", hint=said.hint)
    if (group := each.group) is not None:
        for said in group_findings(group, limits):
            yield obstacle(f"{each.words} would not be taken today: {said.detail}", hint=said.hint)


def _sentence(step: Step) -> str:
    """A sentence that tells people what undoing does to the rule or group."""
    match step.action:
        case EditAction.CREATED:
            return f"{step.words} is there again."
        case EditAction.DELETED:
            return f"{step.words} is deleted."
        case EditAction.UPDATED:
            return f"{step.words} becomes what it was."


def _changed_since(each: Step, now: AccessState, changed_by: Writers) -> Finding:
    current = now.state(each.subject, each.id)
    became = "is gone" if current is None else "is there again" if each.before is None else "was changed again since"
    if (by := changed_by.get((each.subject, each.id or 0))) is not None:
        author, change = by
        return obstacle(
            f"{each.words} {became}: by {author} in change {change[:8]}.",
            hint="Take that change back first, or write the rule or group you want under Access.",
        )
    return obstacle(
        f"{each.words} {became}: a client group it speaks of has another key now.",
        hint="Give the group its key again, or write the rule you want under Access.",
    )


def _shared_obstacles(restored: Sequence[Step], now: AccessState, limits: Limits) -> Iterable[Finding]:
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
                taken = called(subject, holder, there[holder])
                yield obstacle(
                    f"{each.words} cannot have its {member} {after[member]} again: {taken} has it.",
                    hint=f"Give that one another {member} first.",
                )
        if len(holders) + len(back) > max(limit, len(there)):
            nouns = "access rules" if subject is EditSubject.RULE else "client groups"
            yield obstacle(f"'{now.environment}' would have more {nouns} than the {limit:,} that are allowed.")
