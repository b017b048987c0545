"""What connected clients would lose by a change set is asked when it is scheduled, and asked again at its time."""

import pytest

from controlplane.changesets.services import change_sets_tick
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.conftest import Caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def fleet(environments: None) -> Fleet:
    """Three clients that have a cluster."""
    publish(cluster("pay"))
    fleet = Fleet(3)
    fleet.accept(held("pay", 1))
    digest()
    return fleet


def deleting(api: Caller) -> str:
    """The id of a change set that deletes what clients have."""
    made = api.post("environments/default/change-sets", {"title": "x", "delete": [{"type": "cluster", "name": "pay"}]})
    assert made.status == 201, made.json
    return str(made.json["id"])


def test_change_set_schedule__clients_would_lose_something__is_refused_until_accepted_and_no_more_is_lost(
    api: Caller, fleet: Fleet
) -> None:
    made = deleting(api)
    path, body = f"change-sets/{made}/schedule", {"not_before": "2026-01-01T00:00:00Z"}

    refused, accepted = api.post(path, body), api.post(f"{path}?accept_loss=3", body)
    late = Fleet(1, first=7)
    late.accept(held("pay", 1))
    change_sets_tick()

    assert (refused.status, refused.json["code"], accepted.status) == (409, "XDS3013", 200)
    stopped = api.get(f"change-sets/{made}").json
    assert (stopped["state"], stopped["loss"]["clients"]) == ("draft", 4)
    assert "accept_loss=4" in stopped["waits_for"]
    assert api.post(f"{path}?accept_loss=4", body).status == 200
    change_sets_tick()
    assert api.get(f"change-sets/{made}").json["state"] == "published"
