"""Says in the log what this process took over: which snapshot, and the changes that came with it.

Told once the streams have it: who looks for a change can wait a millisecond, and clients should not.
"""

from dataclasses import dataclass, field

import structlog
from django.db import DatabaseError

from controlplane.catalog.change_names import changes_between, named_fields
from controlplane.snapshots.selectors import SnapshotHead

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class TakenOver:
    """The snapshots that were loaded and not yet logged, each with the one served before. For the loader's thread."""

    _waiting: list[tuple[SnapshotHead, SnapshotHead | None]] = field(default_factory=list)

    def add(self, head: SnapshotHead, before: SnapshotHead | None) -> None:
        """Note that the snapshot `head` is loaded in place of `before` (None: nothing was served)."""
        self._waiting.append((head, before))

    def tell(self) -> None:
        """Log each snapshot that was added, with the names that differ from the one served before, also by epochs that
        were never loaded.
        """
        waiting, self._waiting = self._waiting, []
        for head, before in waiting:
            log.info(
                "snapshot.loaded",
                environment=head.environment,
                lineage=head.lineage,
                epoch=head.epoch,
                generation=head.generation,
                **_names(head, before),
            )


def _names(head: SnapshotHead, before: SnapshotHead | None) -> dict[str, list[str]]:
    """The fields of a log line about the names that changed between two snapshots; about the newest changes where
    `before` is None or comes from the disk.
    """
    after = before.generation if before is not None else None
    if head.generation is None:
        return {}
    try:
        names = changes_between(environment_key=head.environment, after=after or 0, until=head.generation)
    except DatabaseError:
        return {}  # it is served all the same
    return named_fields(names)
