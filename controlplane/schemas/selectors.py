"""What sets there are, and what of the stored resources a schema does not know. Values only."""

from collections.abc import Iterator

from google.protobuf.any_pb2 import Any as AnyProto

from controlplane.catalog.contents import contents_now
from controlplane.schemas.models import DescriptorSet
from controlplane.schemas.values import SetRow, Unknown
from xdscore.schema import shipped
from xdscore.schema.pool import Schema
from xdscore.schema.positions import pointer_of
from xdscore.schema.unknown import unknown_in


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
        for place, what in unknown_in(AnyProto.FromString(any_bytes), schema):
            yield Unknown(environment, word, name, pointer_of(place), what)
