"""What a change set does with access rules and client groups, while it is drafted: kept, and brought up to what is
stored.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from django.conf import settings
from django.db.models import Count

from controlplane.access.choices import EditSubject
from controlplane.access.models import AccessEdit
from controlplane.access.planning import said_of, wish_findings
from controlplane.access.selectors import access_state
from controlplane.access.steps import AccessState, rule_of
from controlplane.access.values import RuleDraft, Wish
from controlplane.changesets.models import ChangeSet, ChangeSetWish
from controlplane.changesets.reading import Key
from controlplane.changesets.values import MAX_WISHES, Merge, Take
from controlplane.common.errors import InputInvalid
from xdscore.findings import Finding, Severity
from xdscore.limits import Limits

_NEW: Final = "new-"


@dataclass(frozen=True, slots=True)
class SetWishes:
    """What an edit makes of what a change set does with rules and groups. `wishes`: all that it does from now on; None:
    as it was, with `adds` and without what `removes` names.
    """

    wishes: Sequence[Wish] | None
    adds: Sequence[Wish] = ()
    removes: Collection[Key] = ()


def wishes_change(row: ChangeSet, changes: SetWishes) -> bool:
    """Make what the set does with rules and groups what `changes` says; returns whether that changed anything. What the
    set has already keeps what it was made from. Raises InputInvalid with everything that is wrong.
    """
    before = {(each.subject, each.name): each for each in row.wishes.all()}
    given = [_normal(each) for each in (changes.adds if changes.wishes is None else changes.wishes)]
    left = before.keys() if changes.wishes is not None else before.keys() & set(changes.removes)
    if not given and not left:
        return False
    now = access_state(environment_key=row.environment.key)
    wanted = list(_named(given, list(before.values()), now))
    _refuse(wanted, now, before.keys())
    new = [each for each in wanted if _key(each) not in before or not _is_as(before[_key(each)], each)]
    gone = (left - {_key(each) for each in wanted}) | (before.keys() & {_key(each) for each in new})
    if len(before) - len(gone) + len(new) > MAX_WISHES:
        raise InputInvalid(f"A change set has at most {MAX_WISHES} rules and groups. Nothing was changed.")
    row.wishes.filter(pk__in=[before[key].pk for key in gone]).delete()
    edits = _edits_of(new)
    ChangeSetWish.objects.bulk_create([_row(row, each, before.get(_key(each)), edits, now) for each in new])
    return bool(gone or new)


def wishes_merge(row: ChangeSet, merges: Sequence[Merge]) -> bool:
    """Do what is wanted about rules and groups that moved, all of which the set has; returns whether that changed
    anything. One that is gone is made again where the set keeps its own.
    """
    is_changed = False
    for each in merges:
        kept = row.wishes.filter(subject=each.type, name=each.name).first()
        if kept is None:  # decided about twice
            continue
        if each.take is Take.THEIRS:
            kept.delete()
            is_changed = True
            continue
        now = access_state(environment_key=row.environment.key)
        wish = Wish(EditSubject(kept.subject), kept.name, kept.subject_id, None)
        if wish.subject is EditSubject.GROUP and wish.id not in now.groups:
            wish = replace(wish, id=_group_with(kept.name, now) or wish.id)
        fresh = _row(row, wish, None, _edits_of([wish]), now)
        if (kept.base, kept.subject_id) != (fresh.base, fresh.subject_id):
            kept.base, kept.subject_id, kept.before = fresh.base, fresh.subject_id, fresh.before
            kept.save(update_fields=["base", "subject_id", "before"])
            is_changed = True
    return is_changed


def _normal(wish: Wish) -> Wish:
    return replace(wish, draft=wish.draft.normal) if isinstance(wish.draft, RuleDraft) else wish


def _key(wish: Wish) -> Key:
    return wish.subject.value, wish.name


def _named(given: Iterable[Wish], before: Sequence[ChangeSetWish], now: AccessState) -> Iterator[Wish]:
    """The wishes with the names by which the set knows them, and the ids of what is stored."""
    groups = {each.name: each.subject_id for each in before if each.subject == EditSubject.GROUP.value}
    by_id = {number: name for name, number in groups.items() if number is not None}
    new = {each.name: each.draft for each in before if each.subject == EditSubject.RULE.value and not each.subject_id}
    taken = {*new, *(each.name for each in given)}
    named = {each.id for each in given if each.subject is EditSubject.RULE}
    for wish in given:
        each = _there_already(wish, named, now)
        if each.subject is EditSubject.GROUP:
            name = each.name if each.id is None else by_id.get(each.id, "")
            yield replace(each, name=name, id=groups[name]) if name in groups else _stored(each, now)
        elif each.id is not None:
            yield replace(_positioned(each, now), name=str(each.id))
        else:
            yield replace(each, name=_name_of_new(each, new, taken))


def _stored(wish: Wish, now: AccessState) -> Wish:
    """The wish about a group with its id: that of the stored group that has its key, where none was named."""
    if wish.id is not None:
        return replace(wish, name=str(now.groups[wish.id]["key"])) if wish.id in now.groups else wish
    return replace(wish, id=_group_with(wish.name, now))


def _group_with(key: str, now: AccessState) -> int | None:
    return next((number for number, state in now.groups.items() if state["key"] == key), None)


def _there_already(wish: Wish, named: set[int | None], now: AccessState) -> Wish:
    """The wish about the stored rule that is just as it says, where it says of no rule which and where it is to be: so
    what a pipeline sends again and again is made once. `named`: the ids that are spoken of already.
    """
    draft = wish.draft
    if wish.id is None and not wish.name and isinstance(draft, RuleDraft) and draft.position is None:
        for number, state in now.rules.items():
            if number not in named and {**state, "position": None} == draft.as_json():
                named.add(number)
                return replace(wish, id=number)
    return wish


def _positioned(wish: Wish, now: AccessState) -> Wish:
    """The wish about a rule that is stored: where it names no position, the rule stays where it is."""
    state = now.state(wish.subject, wish.id)
    if isinstance(wish.draft, RuleDraft) and wish.draft.position is None and state is not None:
        return replace(wish, draft=replace(wish.draft, position=rule_of(state).position))
    return wish


def _name_of_new(wish: Wish, new: dict[str, object], taken: set[str]) -> str:
    """The name of a rule to be made: the one it has, or that of one just like it which the set has, or a new one."""
    state = wish.draft.as_json() if wish.draft is not None else None
    name = wish.name if wish.name in new else next((name for name, kept in new.items() if kept == state), "")
    if not name:
        name = next(name for name in (f"{_NEW}{number}" for number in count(1)) if name not in taken)
    new.pop(name, None)
    taken.add(name)
    return name


def _refuse(wishes: Sequence[Wish], now: AccessState, before: Collection[Key]) -> None:
    """Raise InputInvalid with everything that is wrong with these wishes by themselves. What they come to together with
    all others is looked at when the set is shown and when it is published.
    """
    limits: Limits = settings.PARLEY.limits
    keys = Counter(map(_key, wishes))
    findings: list[Finding] = []
    for each in wishes:
        if keys[_key(each)] > 1:
            findings.append(said_of(each, _wrong("The change set is to do something with it more than once.")))
        is_there = now.state(each.subject, each.id) is not None or _key(each) in before
        if each.id is not None and each.draft is not None and not is_there:
            noun = "access rule" if each.subject is EditSubject.RULE else "client group"
            said = f"There is no {noun} with the id {each.id} in '{now.environment}'."
            findings.append(said_of(each, _wrong(said, "/id")))
        findings += (said_of(each, said) for said in wish_findings(each, limits, environment=now.environment))
    if findings:
        raise InputInvalid(
            "Rules or groups cannot be proposed as they are. Nothing was changed.", findings=tuple(findings)
        )


def _wrong(detail: str, pointer: str = "") -> Finding:
    return Finding(code=InputInvalid.code, severity=Severity.ERROR, pointer=pointer, detail=detail)


def _is_as(kept: ChangeSetWish, wish: Wish) -> bool:
    draft = wish.draft.as_json() if wish.draft is not None else None
    return bool(kept.draft == draft)


def _row(
    row: ChangeSet, wish: Wish, kept: ChangeSetWish | None, edits: Mapping[tuple[str, int], int], now: AccessState
) -> ChangeSetWish:
    """The row of a wish. What the set has already (`kept`) stays made from what it was made from; `edits`: how many
    edits there were of what is stored now.
    """
    made = ChangeSetWish(
        change_set=row,
        subject=wish.subject.value,
        name=wish.name,
        draft=wish.draft.as_json() if wish.draft is not None else None,
    )
    if kept is not None:
        made.subject_id, made.base, made.before = kept.subject_id, kept.base, kept.before
    else:
        made.subject_id, made.before = wish.id, now.state(wish.subject, wish.id)
        made.base = edits.get((made.subject, wish.id or 0), 0) if made.before is not None else 0
    return made


def _edits_of(wishes: Iterable[Wish]) -> Mapping[tuple[str, int], int]:
    """How many edits there were of each of these rules and groups, by subject and id."""
    found: dict[tuple[str, int], int] = {}
    for subject in EditSubject:
        ids = [each.id for each in wishes if each.subject is subject and each.id is not None]
        rows = AccessEdit.objects.filter(subject=subject.value, subject_id__in=ids).order_by()
        counted = rows.values_list("subject_id").annotate(n=Count("pk"))
        found.update({(subject.value, number): edits for number, edits in counted})
    return found
