"""One client with several streams is shown as one (protocol.md K3)."""

from adsserver.ports import ResourceStatus, SyncState
from adsserver.store.fleet_status import _together
from xdscore.resource_types import CLUSTER


def status(state: SyncState, details: str = "") -> ResourceStatus:
    return ResourceStatus(CLUSTER, "a", state, details=details)


def test_together__one_of_three_streams_rejected_it__is_shown_with_its_share() -> None:
    statuses = [status(SyncState.SYNCED), status(SyncState.ERROR, "bad regex"), status(SyncState.STALE)]

    shown = _together(statuses)

    assert (shown.state, shown.details) == (SyncState.ERROR, "On 1 of 3 streams of this client. bad regex")


def test_together__all_streams_alike__is_shown_as_it_is() -> None:
    assert _together([status(SyncState.SYNCED), status(SyncState.SYNCED)]) == status(SyncState.SYNCED)
