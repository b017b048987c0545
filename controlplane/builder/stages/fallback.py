"""Which content of each name is served: its head, or what it falls back to (architecture.md law 1, resolutions D1).

A revision in quarantine is replaced by the last proven one; where none was ever proven the name is withheld, and says
so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controlplane.catalog.heads import Head
from xdscore.snapshot import Entry, EntryKey, RemovedName, Served, WithheldName

# Ends the sentence clients read: "Cluster 'pay' is withheld: rejected by clients." (ux.md section 8, XDS2106)
REJECTED = "rejected by clients"


@dataclass(frozen=True, slots=True)
class Held:
    """A name whose head is not served: it runs `served` instead, or nothing."""

    key: EntryKey
    reason: str
    served: bool


def resolve_entries(heads: Iterable[Head]) -> tuple[Mapping[EntryKey, Entry], tuple[Held, ...]]:
    """The entry of every name, and which names do not serve their head."""
    entries: dict[EntryKey, Entry] = {}
    held: list[Held] = []
    for head in heads:
        fallback = None if head.proven_quarantined else head.proven
        if head.content is None:
            entries[head.key] = RemovedName()
        elif not head.quarantined:
            entries[head.key] = Served(head.content, fallback)
        elif fallback is not None:
            entries[head.key] = Served(fallback, fallback)
            held.append(Held(head.key, REJECTED, served=True))
        else:
            entries[head.key] = WithheldName(REJECTED)
            held.append(Held(head.key, REJECTED, served=False))
    return entries, tuple(held)
