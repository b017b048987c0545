"""Under which keys this installation stores, so that a process with other keys learns it before it seals or signs.

Whoever seals or signs under a new first key notes its mark; `rotate_keys` forgets those that nothing is under any more.
A process none of whose keys is noted would write what nobody else can read, and read nothing of what is there.
"""

from controlplane.catalog.key_words import foreign_sentence
from controlplane.catalog.models import KeyMark
from controlplane.catalog.sealing import key_ring
from controlplane.common.errors import DependencyError


class KeysForeign(DependencyError):
    """The database is written under encryption keys of which this process has none, so the process must neither encrypt
    nor sign.
    """


def key_marks() -> tuple[str, ...]:
    """The ids of the encryption keys under which the database is written, newest first; they do not tell the keys."""
    return tuple(KeyMark.objects.order_by("-id").values_list("mark", flat=True))


def keys_permit() -> None:
    """Check that this process has an encryption key under which the database is written, before it encrypts or signs;
    store the id of its first key if that is new. Raises KeysForeign where it has none.
    """
    ours, noted = key_ring().marks, key_marks()
    if ours[0] in noted:
        return
    if noted and not set(ours) & set(noted):
        raise KeysForeign(foreign_sentence(ours, noted))
    KeyMark.objects.bulk_create([KeyMark(mark=ours[0])], ignore_conflicts=True)


def key_marks_settle() -> None:
    """Forget the ids of all encryption keys but the first one. Called once everything is encrypted under that key, or
    given up.
    """
    first = key_ring().marks[0]
    KeyMark.objects.bulk_create([KeyMark(mark=first)], ignore_conflicts=True)
    KeyMark.objects.exclude(mark=first).delete()
