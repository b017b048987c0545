"""The strict apply: references to nothing are refused, where they would otherwise be held at build (decisions U8).

Only what is put is judged. Who still refers to what is deleted is warned of as ever (U9): a resource of somebody else
never stands in a deletion's way.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from controlplane.catalog.models import Environment, Resource
from controlplane.catalog.references import XDSTP, Authorities, missing_findings, needs_of
from controlplane.common.errors import InputInvalid
from xdscore.schema.parse import ParsedResource
from xdscore.snapshot import EntryKey

_BATCH = 500


def refuse_missing(
    environment: Environment, *, put: Mapping[EntryKey, ParsedResource], deleted: Collection[EntryKey]
) -> None:
    """Raise InputInvalid with every reference of a written resource (`put`) to a name that does not exist after the
    edits.
    """
    needs = {key: places for key, parsed in put.items() if (places := needs_of(parsed))}
    wanted = {target for places in needs.values() for target in places} - put.keys()
    kept = {key for key in _present(environment, wanted) if key not in deleted}
    authorities = Authorities(chain(put, (key for key in _in_xdstp(environment) if key not in deleted)))
    findings = missing_findings(needs, kept | put.keys(), authorities, environment.key)
    if findings:
        count = len(findings)
        raise InputInvalid(
            f"{count:,} {'reference names' if count == 1 else 'references name'} what neither is in "
            f"'{environment.key}' nor comes with this apply. Nothing was changed.",
            findings=tuple(findings),
        )


def _present(environment: Environment, keys: Collection[EntryKey]) -> Iterator[EntryKey]:
    rows = Resource.objects.filter(environment=environment, deleted=False)
    for word in sorted({word for word, _ in keys}):
        names = sorted(name for each, name in keys if each == word)
        for start in range(0, len(names), _BATCH):
            batch = rows.filter(type=word, name__in=names[start : start + _BATCH])
            yield from batch.values_list("type", "name")


def _in_xdstp(environment: Environment) -> Iterator[EntryKey]:
    """The type and name of each xdstp name that exists in the environment."""
    rows = Resource.objects.filter(environment=environment, deleted=False, name__startswith=XDSTP)
    yield from rows.values_list("type", "name").iterator()
