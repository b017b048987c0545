"""Adds and removes sets of descriptors. Nothing is half taken, and nothing that is stored becomes unreadable."""

import lzma
import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

from django.db import transaction
from django.utils import timezone
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from controlplane.catalog.services import environments_publish_lock
from controlplane.common.errors import InputInvalid, NotFound
from controlplane.common.principal_ids import Actor
from controlplane.journal.services import audit_record
from controlplane.schemas.following import schema_follow, schema_take, sets_stored, stand_now
from controlplane.schemas.models import DescriptorSet
from controlplane.schemas.selectors import unknown_parts
from xdscore.schema import shipped
from xdscore.schema.pool import Schema, SchemaError
from xdscore.schema.sets import packed, schema_with, tried
from xdscore.schema.types_registry import schema

MAX_SETS: Final = 32
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_NAMED: Final = 10


class SetRefused(InputInvalid):
    """A set of descriptors is not taken. `problems`: everything that is wrong, a sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("The set was not taken. Nothing was changed.")
        self.problems = tuple(problems)


def set_add(*, name: str, files: Sequence[FileDescriptorProto], actor: Actor) -> bool:
    """Store a set under a name, in place of the one with that name, and read by it here at once; other processes
    follow. Returns False when the same set is there already. Raises SetRefused, also where stored resources have
    something that only the set in its place knows.
    """
    if not _NAME.fullmatch(name):
        raise SetRefused([f"'{name[:80]}' is no name of a set: small letters, digits, dots and hyphens, 63 at most."])
    if name in shipped.names():
        raise SetRefused([f"'{name}' is a set that Parley brings along; give yours another name."])
    content = packed(files)
    digest = sha256(content).hexdigest()
    with transaction.atomic():
        sets = _sets_locked()
        before = DescriptorSet.objects.filter(name=name).first()
        if before is not None and before.digest == digest:
            return False
        if before is None and len(sets) >= MAX_SETS:
            raise SetRefused([f"There are {MAX_SETS} sets already; remove one, or put several into one."])
        sets[name] = list(files)
        try:
            made = tried(schema_with(sorted(sets.items())), schema())
        except SchemaError as error:
            raise SetRefused(error.problems) from None
        if before is not None:
            lost = _lost(made)
            if lost:
                raise SetRefused(lost)
        DescriptorSet.objects.update_or_create(
            name=name,
            defaults={
                "digest": digest,
                "content": lzma.compress(content),
                "files": len(files),
                "messages": sum(len(file.message_type) for file in files),
                "added_by": actor.name,
                "added_at": timezone.now(),
            },
        )
        audit_record(actor=actor, verb="schema.added", subject=name, detail={"digest": digest, "files": len(files)})
        stand = stand_now()
    schema_take(made, stand)
    return True


def set_remove(*, name: str, actor: Actor) -> None:
    """Remove a set, and read without it here at once; other processes follow. Raises NotFound, and SetRefused where
    stored resources have something that only this set knows.
    """
    with transaction.atomic():
        sets = _sets_locked()
        if name not in sets:
            hint = "Parley brings it along." if name in shipped.names() else "`manage.py schema list` shows them."
            raise NotFound(f"There is no set '{name}' that was added. {hint}")
        del sets[name]
        try:
            made = schema_with(sorted(sets.items()))
        except SchemaError as error:
            raise SetRefused(error.problems) from None
        lost = _lost(made)
        if lost:
            raise SetRefused(lost)
        DescriptorSet.objects.filter(name=name).delete()
        audit_record(actor=actor, verb="schema.removed", subject=name)
        stand = stand_now()
    schema_take(made, stand)


def _sets_locked() -> dict[str, list[FileDescriptorProto]]:
    """The stored sets, which this process reads by, while nobody else writes resources or sets until the transaction
    ends.
    """
    environments_publish_lock()
    # After an upgrade the sets may not fit any more; taking one out, or another in, is how that is mended.
    with suppress(SchemaError):
        schema_follow()
    return sets_stored()


def _lost(made: Schema) -> list[str]:
    """A sentence for each stored resource that has something which `made` does not know and the schema of now does."""
    known = {(each.environment, each.type, each.name, each.place, each.what) for each in unknown_parts(schema())}
    lost: dict[tuple[str, str, str], str] = {}
    for each in unknown_parts(made):
        if (each.environment, each.type, each.name, each.place, each.what) not in known:
            lost.setdefault(
                (each.environment, each.type, each.name),
                f"{each.type} '{each.name}' of environment {each.environment} has {each.what} at {each.place or '/'}.",
            )
    more = len(lost) - _NAMED
    return [*list(lost.values())[:_NAMED], *([f"And {more:,} more resources."] if more > 0 else [])]
