"""Who still refers to what a change deletes: a rename that left somebody behind, or a deletion too early.

A warning, never a refusal (decisions U9): the builder holds back what refers to nothing, and only that.
"""

from collections.abc import Collection, Iterator, Mapping

from django.db import models

from controlplane.catalog.models import Environment, Reference
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding
from xdscore.schema.parse import ParsedResource

Key = tuple[str, str]

_BATCH = 500
_MAX_SHOWN = 3


def orphans_of(
    environment: Environment,
    *,
    deleted: Collection[Key],
    put: Mapping[Key, ParsedResource],
    created: Collection[Key],
) -> tuple[Finding, ...]:
    """One warning for each deleted name to which a resource of the environment still refers after the change. `put`:
    what is written; `created`: the names that did not exist before.
    """
    if not deleted:
        return ()
    referrers = _referrers(environment, deleted, gone={*deleted, *put})
    for key, parsed in put.items():
        for named in {(reference.type, reference.name) for reference in parsed.references}:
            if named in referrers:
                referrers[named].append(key)
    return tuple(_finding(key, sorted(found), created) for key, found in referrers.items() if found)


def _referrers(environment: Environment, deleted: Collection[Key], *, gone: set[Key]) -> dict[Key, list[Key]]:
    """For each deleted name, the resources that refer to it, leaving out those in `gone`: deleted themselves, or
    written anew.
    """
    found: dict[Key, list[Key]] = {key: [] for key in sorted(deleted)}
    for word, names in _by_word(deleted):
        for start in range(0, len(names), _BATCH):
            rows = Reference.objects.filter(
                to_type=word,
                to_name__in=names[start : start + _BATCH],
                revision__resource__environment=environment,
                revision__resource__deleted=False,
                revision=models.F("revision__resource__head"),
            )
            columns = ("to_name", "revision__resource__type", "revision__resource__name")
            for name, referrer_word, referrer_name in rows.values_list(*columns):
                if (referrer_word, referrer_name) not in gone:
                    found[word, name].append((referrer_word, referrer_name))
    return found


def _by_word(keys: Collection[Key]) -> Iterator[tuple[str, list[str]]]:
    for word in sorted({word for word, _ in keys}):
        yield word, sorted(name for each, name in keys if each == word)


def _finding(key: Key, referrers: list[Key], created: Collection[Key]) -> Finding:
    word, name = key
    shown = ", ".join(f"{each} '{who}'" for each, who in referrers[:_MAX_SHOWN])
    more = len(referrers) - _MAX_SHOWN
    successors = [other for each, other in sorted(created) if each == word]
    if len(successors) == 1:
        remedy = f"If it was renamed to '{successors[0]}', point them to the new name."
    else:
        remedy = "Point them elsewhere, or restore it from its history."
    return (
        CATALOGUE["XDS3007"]
        .finding("", word=word, name=name, referrers=shown + (f" and {more} more" if more > 0 else ""), remedy=remedy)
        .about(word, name)
    )
