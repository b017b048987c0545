"""Writes owners and labels of resources, as a part of a change; `catalog.marking` says what they are."""

from collections.abc import Mapping, Sequence
from operator import itemgetter

from controlplane.catalog.marking import Key, Mark, Marked, labels_of
from controlplane.catalog.models import Change, Resource, Revision
from controlplane.catalog.services.expecting import is_present
from controlplane.catalog.undoing import owners_of
from controlplane.common.errors import InputInvalid, NotFound
from xdscore.findings import Finding, Severity
from xdscore.labels import count_problem, edit_words, edited, packed, unpacked
from xdscore.resource_types import by_word
from xdscore.schema.codes import VALUE_REFUSED

_BATCH = 125  # SQLite allows 32,766 variables in one statement; a row has a dozen columns


def marked_by(
    marks: Sequence[Mark], current: Mapping[Key, Resource], becomes: Mapping[Key, str | None]
) -> tuple[Marked, ...]:
    """What these marks change. `becomes`: the resources that the same write puts, and the owner that each gets by that;
    None: it keeps its own. Raises NotFound and InputInvalid with a finding for each resource that is not there, or
    would have too many labels.
    """
    found: dict[Key, Marked] = {}
    absent, crowded = [], []
    for mark in marks:
        row = current.get(mark.key)
        if not is_present(row) and mark.key not in becomes:
            absent.append(_finding(NotFound.code, mark.key, "There is no {} '{}'."))
            continue
        owner, labels = (row.owner, unpacked(row.labels)) if row is not None else ("", {})
        if mark.key in found:
            labels = dict(found[mark.key].labels[1])
        after = edited(labels if mark.whole is None else mark.whole, mark.labels)
        if problem := count_problem(after):
            crowded.append(_finding(VALUE_REFUSED.code, mark.key, f"The {{}} '{{}}' {problem}."))
        had = becomes.get(mark.key)
        had = owner if had is None else had
        before = found[mark.key].labels[0] if mark.key in found else labels
        found[mark.key] = Marked(mark.key, (had, had if mark.owner is None else mark.owner), (before, after))
    if absent:
        raise NotFound(
            f"{len(absent)} of the resources to mark are not there. Nothing was changed.", findings=tuple(absent)
        )
    if crowded:
        raise InputInvalid("A resource would have too many labels. Nothing was changed.", findings=tuple(crowded))
    return tuple(each for each in found.values() if each.owner_moves or each.labels_move)


def marks_write(marked: Sequence[Marked], rows: Mapping[Key, Resource]) -> None:
    """Store what was marked. `rows`: the stored resources, by type and name."""
    for each in marked:
        row = rows[each.key]
        if each.owner_moves:
            row.owner = each.owner[1]
        row.labels = packed(each.labels[1])
    # As `changes` stores resources, and for the same reason.
    Resource.objects.bulk_create(
        [rows[each.key] for each in marked],
        update_conflicts=True,
        unique_fields=["environment", "type", "name"],
        update_fields=["owner", "labels"],
        batch_size=_BATCH,
    )


def marks_back(change: Change) -> tuple[Mark, ...]:
    """What undoes the marks of a change: owners and labels become what they were, except those that were set again
    since, and those of resources that are deleted now. The owner of a resource that the change wrote goes back with its
    content, and is not among them.
    """
    written = set(Revision.objects.filter(change=change).values_list("resource__type", "resource__name"))
    owners = {(word, name): (was, became) for word, name, was, became in owners_of(change.undo)}
    labels = {moved.key: moved for moved in labels_of(change.undo)}
    found = []
    for key, row in sorted(_present(change, {*(owners.keys() - written), *labels}).items(), key=itemgetter(0)):
        was, became = owners.get(key, ("", None)) if key not in written else ("", None)
        owner = was if row.owner == became else None
        edits = labels[key].back(unpacked(row.labels)) if key in labels else {}
        if edits or owner is not None:
            found.append(Mark(by_word[key[0]], key[1], owner, edits))
    return tuple(found)


def marks_steps(marks: Sequence[Mark]) -> tuple[str, ...]:
    """Sentences that say what these marks do."""
    steps = []
    for mark in marks:
        whose = f"'{mark.owner}'" if mark.owner else "nobody"
        said = [f"belongs to {whose} again"] if mark.owner is not None else []
        said += [f"is labelled {' '.join(edit_words(mark.labels))}"] if mark.labels else []
        steps.append(f"The {mark.kind.word} '{mark.name}' {' and '.join(said)}.")
    return tuple(steps)


def _present(change: Change, keys: set[Key]) -> dict[Key, Resource]:
    """The stored resources of these types and names that exist now, by type and name."""
    found: dict[Key, Resource] = {}
    wanted = sorted(keys)
    for start in range(0, len(wanted), _BATCH):
        batch = set(wanted[start : start + _BATCH])
        rows = Resource.objects.filter(
            environment=change.environment_id, name__in={name for _, name in batch}, deleted=False
        )
        found |= {(row.type, row.name): row for row in rows if (row.type, row.name) in batch}
    return found


def _finding(code: str, key: Key, text: str) -> Finding:
    return Finding(code, Severity.ERROR, text.format(*key)).about(*key)
