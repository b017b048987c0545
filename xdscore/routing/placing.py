"""Where in manifests an answer's places stand: JSON pointers from the root of each, and lines of its YAML."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from xdscore.routing.values import ClusterShare, Endpoint, Key, Lost, Place, Rung, Traced
from xdscore.schema.yaml_lines import Lines

P = TypeVar("P", Rung, Lost, ClusterShare, Endpoint)


def placed(found: Traced, lines: Mapping[Key, Lines]) -> Traced:
    """The answer with the line of each place, whose pointer leads from the root of its manifest, also where that is a
    wrapper. `lines`: of the manifests that the answer is about; lines of others stay unknown.
    """
    return replace(
        found,
        rungs=tuple(_at(replace(each, lost=_all_at(each.lost, lines)), lines) for each in found.rungs),
        shares=_all_at(found.shares, lines),
        endpoints=_all_at(found.endpoints, lines),
    )


def _all_at(found: tuple[P, ...], lines: Mapping[Key, Lines]) -> tuple[P, ...]:
    return tuple(_at(each, lines) for each in found)


def _at(found: P, lines: Mapping[Key, Lines]) -> P:
    where = _where(found.place, lines)
    return found if where is None else replace(found, place=where[0], line=where[1])


def _where(place: Place | None, lines: Mapping[Key, Lines]) -> tuple[Place, int] | None:
    known = lines.get(place.key) if place is not None else None
    if place is None or known is None:
        return None
    return Place(place.key, known.root + place.path), known.at(place.path)
