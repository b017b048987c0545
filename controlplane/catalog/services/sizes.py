"""Keeps the state of a type small enough for clients that take all of it in one message (F24, decisions D17).

gRPC clients refuse messages above 4 MiB and only try again, and a SotW response of listeners or clusters cannot be
split. So the change that would make one too large is refused, and names what is largest; everything else goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import models

from controlplane.catalog.models import Environment, Resource
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding
from xdscore.resource_types import RESOURCE_TYPES, ResourceType
from xdscore.snapshot import FRAME_BYTES

_TOO_LARGE = CATALOGUE["XDS3016"]
_LARGE = CATALOGUE["XDS3017"]
_MAX_SHOWN = 5

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SizeFindings:
    """Findings about how large the responses of a type grow by a change: with any `errors` the change is refused;
    `warnings` are told with it.
    """

    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()


def sizes_after(environment: Environment, *, before: Mapping[Key, int], after: Mapping[Key, int]) -> SizeFindings:
    """Judge a change by how large the environment gets. `before` and `after`: the size in bytes of each resource that
    the change writes; one that does not exist is left out.

    Only growth is judged: an environment that exceeds a lowered limit can still be changed and emptied.
    """
    limit: int = settings.PARLEY.limits.sotw_state_bytes
    errors: list[Finding] = []
    warnings: list[Finding] = []
    for kind in RESOURCE_TYPES:
        if not (kind.wildcard and kind.full_state):
            continue
        growth = _weight(kind, after) - _weight(kind, before)
        if growth <= 0:
            continue
        total = _stored(environment, kind) + growth
        values = {"title": kind.title, "environment": environment.key, "size": f"{total:,}", "limit": f"{limit:,}"}
        if total > limit:
            errors.append(_TOO_LARGE.finding("", hint=_largest(environment, kind, before, after), **values))
        elif total > settings.PARLEY.limits.sotw_state_warning_bytes:
            warnings.append(_LARGE.finding("", **values))
    return SizeFindings(tuple(errors), tuple(warnings))


def _weight(kind: ResourceType, sizes: Mapping[Key, int]) -> int:
    return sum(size + FRAME_BYTES for (word, _), size in sizes.items() if word == kind.word)


def _stored(environment: Environment, kind: ResourceType) -> int:
    rows = Resource.objects.filter(environment=environment, type=kind.word, deleted=False)
    found = rows.aggregate(bytes=models.Sum("head__size"), count=models.Count("pk"))
    stored: int = found["bytes"] or 0
    return stored + FRAME_BYTES * int(found["count"])


def _largest(environment: Environment, kind: ResourceType, before: Mapping[Key, int], after: Mapping[Key, int]) -> str:
    """The largest resources of this type after the change, in words, for whoever has to make something smaller."""
    rows = Resource.objects.filter(environment=environment, type=kind.word, deleted=False)
    stored = rows.order_by("-head__size", "name").values_list("name", "head__size")[: _MAX_SHOWN + len(before)]
    untouched = [(name, size) for name, size in stored if (kind.word, name) not in before]
    written = [(name, size) for (word, name), size in after.items() if word == kind.word]
    shown = sorted(untouched + written, key=lambda row: (-row[1], row[0]))[:_MAX_SHOWN]
    names = ", ".join(f"{name} ({size:,})" for name, size in shown)
    return f"The largest are {names}. Make some smaller or delete some, or move them to another environment."
