"""What clients lost by a change, as REST tells it."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import publish, rebuild
from tests.support.losses import LOSS, lose
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def api() -> Caller:
    environment_default_ensure()
    return caller(*ADMIN_SCOPES)


def test_change__by_which_clients_lost_something__says_what_and_has_its_incident(api: Caller) -> None:
    sound, change = publish(cluster("pay")), lose(publish(delete=("pay",), built=False))
    rebuild()

    assert api.get(f"changes/{sound}").json["loss"] is None
    waiting = api.get(f"changes/{change}").json
    assert (waiting["loss"], waiting["incidents"]) == (LOSS.as_json(), [])
    digest()

    (incident,) = api.get(f"changes/{change}").json["incidents"]

    assert incident == {
        "id": str(Incident.objects.get().public_id),
        "cause": "loss",
        "environment": "default",
        "type": "cluster",
        "name": "pay",
        "state": "open",
        "confidence": "only_change",
        "change": change,
        "message": Incident.objects.get().message,
        "clients": {"nacked": 3, "sent": 5},
        "assigned": None,
        "muted": None,
    }
    assert api.get("incidents?cause=loss&resource=cluster/pay&client=node-3").json["results"] == [incident]
    assert api.get("incidents?cause=nack").json["results"] == []
    assert_problem(api.get("incidents?cause=lost"), 422)


def test_incident__of_a_loss__has_it_and_nothing_to_quarantine(api: Caller) -> None:
    publish(cluster("pay"))
    lose(publish(delete=("pay",), built=False))
    rebuild()
    digest()
    path = f"incidents/{Incident.objects.get().public_id}"

    detail = api.get(path).json

    assert (detail["cause"], detail["loss"]) == ("loss", LOSS.as_json())
    assert (detail["verdict"], detail["revision"], detail["refusing"], detail["samples"]) == (None, 0, [], [])
    for act in ("quarantine", "release"):
        assert_problem(api.post(f"{path}/{act}", {"reason": "no"}), 409)
    assert api.patch(path, {"state": "acknowledged"}).json["assignee"]
