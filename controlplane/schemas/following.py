"""Makes a process read by the sets of descriptors that the database has: when it starts, and again and again."""

import lzma
import threading
import time
from typing import Final

import structlog
from django.db import DatabaseError
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from controlplane.schemas.models import DescriptorSet
from xdscore.schema.pool import Schema, SchemaError
from xdscore.schema.sets import schema_with
from xdscore.schema.types_registry import use

log = structlog.get_logger(__name__)

Sets = dict[str, list[FileDescriptorProto]]
Stand = tuple[tuple[str, str], ...]
"""Name and digest of each set, by name."""

NOTHING: Final[Stand] = ()


class _Followed:
    """What this process reads by."""

    def __init__(self) -> None:
        self.stand: Stand = NOTHING
        self.looked_at: float | None = None
        self.lock = threading.Lock()


_followed = _Followed()


def stand_now() -> Stand:
    """What the database has. Raises DatabaseError."""
    return tuple(DescriptorSet.objects.order_by("name").values_list("name", "digest"))


def schema_follow() -> None:
    """Read by what the database has. Costs a small query where that is nothing new. Raises SchemaError when the sets do
    not fit what Parley brings along, as may be after an upgrade; everything stays as it was then. Raises DatabaseError.
    """
    stand = stand_now()
    if stand == _followed.stand:
        return
    with _followed.lock:
        if stand != _followed.stand:
            schema_take(schema_with(list(sets_stored().items())), stand)


def schema_follow_at_times(period_s: float) -> None:
    """Read by what the database has, looked up at most once in `period_s` seconds. What keeps this process from it is
    logged only: others of the same machine tell it.
    """
    now = time.monotonic()
    if _followed.looked_at is not None and now - _followed.looked_at < period_s:
        return
    _followed.looked_at = now
    try:
        schema_follow()
    except (SchemaError, DatabaseError) as error:
        log.warning("schema.not_followed", reason=str(error))


def schema_take(made: Schema, stand: Stand) -> None:
    """Read by this schema, which is that of `stand`."""
    use(made)
    _followed.stand = stand


def sets_stored() -> Sets:
    """The files of each set, by its name, in the order of names. Raises DatabaseError."""
    rows = DescriptorSet.objects.order_by("name").values_list("name", "content")
    return {name: unpacked(bytes(content)) for name, content in rows}


def unpacked(content: bytes) -> list[FileDescriptorProto]:
    """The files of a set as it is stored."""
    return list(FileDescriptorSet.FromString(lzma.decompress(content)).file)
