"""A cluster that needs endpoints, clients that ask for these, and time that goes by."""

from datetime import timedelta
from typing import Any

from controlplane.clients.models import HoldingMove, Stream, Subscription
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import Fleet
from tests.support.facts import subscribed
from tests.support.manifests import Tree, cluster
from xdscore.resource_types import ENDPOINT


def pay(**more: Any) -> Tree:
    """A cluster whose endpoints are called `pay-hosts`."""
    eds = {"eds_config": {"ads": {}, "resource_api_version": "V3"}, "service_name": "pay-hosts"}
    return cluster("pay", type="EDS", eds_cluster_config=eds, **more)


def a_while_later(seconds: float = 31) -> None:
    """As if everything so far had happened so long ago."""
    before = timedelta(seconds=seconds)
    for rows, column in (
        (Subscription.objects.all(), "held_at"),
        (Stream.objects.all(), "opened_at"),
        (HoldingMove.objects.all(), "at"),
        (SnapshotRow.objects.all(), "at"),
    ):
        for each in rows.exclude(**{column: None}):
            rows.filter(pk=each.pk).update(**{column: getattr(each, column) - before})


def asks(fleet: Fleet, *names: str, who: slice = slice(None), **more: Any) -> None:
    """Some ask for endpoints."""
    for each in fleet.streams[who]:
        fleet.buffer.learnt(each, subscribed(*names, kind=ENDPOINT, **more))
    fleet.write()
