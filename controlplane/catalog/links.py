"""Which resources need each other: what a resource refers to, and what refers to it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import models

from controlplane.catalog.models import Reference, Resource
from xdscore.resource_types import ResourceType

_MAX_LINKS: Final = 200  # of one resource and direction
_IN_A_LIST: Final = re.compile(r"^/resources/\d+(?=/)")


@dataclass(frozen=True, slots=True)
class LinkedName:
    """One end of a reference. `pointer` is the field that names it; `present`: there is such a resource here."""

    type: str
    name: str
    pointer: str
    present: bool


def uses_of(*, environment_key: str, kind: ResourceType, name: str) -> tuple[LinkedName, ...]:
    """What the newest revision of a resource refers to, the first 200 by type and name."""
    rows = _current(environment_key).filter(revision__resource__type=kind.word, revision__resource__name=name)
    named = list(rows.order_by("to_type", "to_name").values_list("to_type", "to_name", "pointer")[:_MAX_LINKS])
    present = _present(environment_key, named)
    return tuple(LinkedName(word, to, _within(pointer), present.get((word, to), False)) for word, to, pointer in named)


def used_by(*, environment_key: str, kind: ResourceType, name: str) -> tuple[LinkedName, ...]:
    """What refers to a name, whether or not it exists, the first 200 by type and name."""
    rows = _current(environment_key).filter(to_type=kind.word, to_name=name)
    columns = ("revision__resource__type", "revision__resource__name", "pointer")
    return tuple(
        LinkedName(word, user, _within(pointer), present=True)
        for word, user, pointer in rows.order_by(*columns[:2]).values_list(*columns)[:_MAX_LINKS]
    )


def _within(pointer: str) -> str:
    """The pointer within the manifest; what is stored begins where the manifest stood in an apply's list."""
    return _IN_A_LIST.sub("", pointer)


def _current(environment_key: str) -> models.QuerySet[Reference]:
    return Reference.objects.filter(
        revision__resource__environment__key=environment_key,
        revision__resource__deleted=False,
        revision__resource__head=models.F("revision"),
    )


def _present(environment_key: str, named: Sequence[tuple[str, str, str]]) -> Mapping[tuple[str, str], bool]:
    rows = Resource.objects.filter(
        environment__key=environment_key, deleted=False, name__in={name for _, name, _ in named}
    )
    return dict.fromkeys(rows.values_list("type", "name"), True)
