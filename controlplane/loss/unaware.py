"""Which connected clients do not know a part of what is written: older Envoys, which lose what it says."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from google.protobuf.any_pb2 import Any as AnyProto

from controlplane.clients.fleet_selectors import envoys_connected
from controlplane.schemas.selectors import envoys_known
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding
from xdscore.schema import ParsedResource
from xdscore.schema.pool import Schema
from xdscore.schema.positions import pointer_of
from xdscore.schema.types_registry import descriptor_of
from xdscore.schema.unknown import UnknownPart, unknown_in

# Of one write and version; a person who reads so many knows.
_MAX_TOLD: Final = 10
# Only of Envoy's own extensions a set says that its Envoy has none of that name.
_OF_ENVOY: Final = "envoy."
_FIELD_UNAWARE: Final = CATALOGUE["XDS3070"]
_TYPE_UNAWARE: Final = CATALOGUE["XDS3071"]


def clients_unaware(environment_key: str, resources: Sequence[ParsedResource]) -> tuple[Finding, ...]:
    """A warning for each part of these resources that connected Envoys of some version do not know, the newest version
    first, so far as there is a set of descriptors of that version.
    """
    packed = [(each, AnyProto.FromString(each.any_bytes)) for each in resources]
    unknown = {version: tuple(_unknown(packed, known)) for version, known in envoys_known().items()}
    # Most of what is written every Envoy knows: then nobody asks who is connected.
    connected = envoys_connected(environment_key=environment_key) if any(unknown.values()) else {}
    found: list[Finding] = []
    for version in sorted(unknown.keys() & connected.keys(), key=_newest_first):
        found += (
            _finding(part, connected[version], version).about(each.type.word, each.name)
            for each, part in unknown[version]
        )
    return tuple(found)


def _newest_first(version: str) -> list[int]:
    return [-int(part) for part in version.split(".")]


def _unknown(
    packed: Sequence[tuple[ParsedResource, AnyProto]], known: Schema
) -> Iterator[tuple[ParsedResource, UnknownPart]]:
    parts = ((each, part) for each, content in packed for part in unknown_in(content, known))
    return islice(((each, part) for each, part in parts if part.message.startswith(_OF_ENVOY)), _MAX_TOLD)


def _finding(part: UnknownPart, count: int, version: str) -> Finding:
    who = f"{count:,} connected {'Envoy' if count == 1 else 'Envoys'} of {version}"
    descriptor = descriptor_of(part.message)
    field = descriptor.fields_by_number.get(part.field) if descriptor is not None else None
    if not part.field:
        return _TYPE_UNAWARE.finding(pointer_of(part.path), who=who, message=part.message)
    name = field.name if field is not None else str(part.field)
    return _FIELD_UNAWARE.finding(pointer_of((*part.path, name)), who=who, field=name, message=part.message)
