"""What sets there are, and what of the stored resources a schema does not know. Values only."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from google.protobuf.any_pb2 import Any as AnyProto

from controlplane.catalog.contents import contents_now
from controlplane.schemas.following import unpacked
from controlplane.schemas.models import DescriptorSet
from controlplane.schemas.values import SetRow, Unknown
from xdscore.schema import shipped
from xdscore.schema.pool import Schema, schema_of
from xdscore.schema.positions import pointer_of
from xdscore.schema.unknown import unknown_in

_ENVOY: Final = "envoy-"


def sets_list() -> tuple[SetRow, ...]:
    """Every set: those that are read by, and at the end the older Envoys that Parley brings along to compare with."""
    own = tuple(
        SetRow(row.name, row.files, row.messages, True, row.digest, row.added_by, row.added_at)
        for row in DescriptorSet.objects.defer("content").order_by("name")
    )
    brought = []
    for name in shipped.names():
        files = shipped.files_of(name)
        brought.append(SetRow(name, len(files), sum(len(each.message_type) for each in files), False))
    return (*own, *brought)


def unknown_parts(schema: Schema) -> Iterator[Unknown]:
    """Every part of a resource as it stands now, in any environment, that `schema` does not know."""
    for environment, word, name, any_bytes in contents_now():
        for part in unknown_in(AnyProto.FromString(any_bytes), schema):
            yield Unknown(environment, word, name, pointer_of(part.path), str(part))


def envoys_known() -> Mapping[str, Schema]:
    """What each version of Envoy (`1.36`) knows of which there is a set, by that of its newest patch. The newest
    version is left out: it knows whatever can be written. One query.
    """
    newest: dict[str, tuple[tuple[int, ...], str, str]] = {}
    added = DescriptorSet.objects.filter(name__startswith=_ENVOY).values_list("name", "digest")
    for name, digest in (*((name, "") for name in shipped.names()), *added):
        numbers = name.removeprefix(_ENVOY).split(".")
        if name.startswith(_ENVOY) and all(each.isdecimal() for each in numbers):
            found = tuple(int(each) for each in numbers)
            version = ".".join(numbers[:2])
            newest[version] = max(newest.get(version, ((), "", "")), (found, name, digest))
    latest = max(newest, key=lambda version: newest[version][0])
    return {version: _schema_alone(*newest[version][1:]) for version in newest if version != latest}


@lru_cache(maxsize=16)
def _schema_alone(name: str, digest: str) -> Schema:
    """The schema of one set; `digest` is empty for a set that Parley brings along."""
    if not digest:
        return schema_of(shipped.files_of(name))
    own = unpacked(bytes(DescriptorSet.objects.get(name=name, digest=digest).content))
    # Imports may be left out of a set.
    return schema_of({each.name: each for each in (*shipped.standard(), *own)}.values())
