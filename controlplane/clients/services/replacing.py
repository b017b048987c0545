"""A restarted ADS process takes the place of its dead self at once, instead of half a minute later.

Who was taken for dead and goes on writing (it drains while its successor starts, or its home is shared with a machine
of the same name) learns it from its next write, and reports its streams again.
"""

from datetime import datetime
from typing import Final

from django.db.backends.utils import CursorWrapper

from controlplane.clients.services.upkeep import DIED

_REPLICAS: Final = """
    UPDATE clients_replica SET stopped_at = %s, replaced_at = %s WHERE place = %s AND id <> %s AND stopped_at IS NULL
"""
# With the cause of any death: for whoever counts losses its clients may still be there.
_STREAMS: Final = """
    UPDATE clients_stream SET closed_at = %s, cause = %s
    WHERE closed_at IS NULL
    AND replica_id IN (SELECT id FROM clients_replica WHERE place = %s AND id <> %s AND replaced_at IS NOT NULL)
"""
_BACK: Final = "UPDATE clients_replica SET replaced_at = NULL WHERE id = %s"


def predecessors_replace(cursor: CursorWrapper, *, place: str, successor: str, now: datetime | str | None) -> None:
    """Close the streams of the ADS processes that were at this place before, and note that they were replaced. Runs
    within the caller's transaction.
    """
    cursor.execute(_REPLICAS, [now, now, place, successor])
    cursor.execute(_STREAMS, [now, DIED, place, successor])


def replica_back(cursor: CursorWrapper, *, replica: str) -> None:
    """Note that an ADS process which was taken for dead and replaced is alive."""
    cursor.execute(_BACK, [replica])
