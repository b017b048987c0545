"""A dry run says what an apply would mean to the clients that are connected."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from tests.api.conftest import Caller, caller
from tests.services.incidents.fleet import Fleet, publish
from tests.support.manifests import cluster, listener

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
DRY = "environments/default/apply?dry_run=true"


@pytest.fixture
def api() -> Caller:
    """With three connected clients, node-1 to node-3, that ask for every cluster; the first one is of group `core`."""
    environment_default_ensure()
    publish(cluster("pay"), cluster("cart"))
    fleet = Fleet(3)
    found = caller(*ADMIN_SCOPES)
    group = {"key": "core", "matchers": [{"node_id": fleet.streams[0].node_id}], "trust": "declared"}
    assert found.post("environments/default/client-groups", group).status == 201
    return found


def test_dry_run__put_and_deletion__who_would_be_sent_what_and_who_would_lose(api: Caller) -> None:
    rule = {"pattern": "cart", "effect": "deny", "client_groups": ["core"]}
    assert api.post("environments/default/rules?accept_loss=1", rule).status == 201
    body = {
        "resources": [cluster("pay", connect_timeout="9s")],
        "delete": [{"type": "cluster", "name": "cart"}],
    }

    impact = api.post(DRY, body).json["impact"]

    assert (impact["connected"], impact["receive"], impact["lose"]) == (3, 3, 2)
    assert impact["groups"] == [
        {"key": None, "connected": 2, "receive": 2, "lose": 2},
        {"key": "core", "connected": 1, "receive": 1, "lose": 0},
    ]
    clients = {each["node_id"]: each["id"] for each in api.get("clients").json["results"]}
    assert {each["node_id"]: each["client"] for each in impact["losing"]}.items() < clients.items()
    assert [each["resources"] for each in impact["losing"]] == [[{"type": "cluster", "name": "cart"}]] * 2
    assert impact["losing_omitted"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"resources": [cluster("pay")]},
        {"resources": [cluster("pay")], "owner": "team"},
        {"resources": [listener("l", "r", 8080)]},
    ],
    ids=["what is there already", "only another owner", "a type nobody asks for"],
)
def test_dry_run__nothing_that_clients_would_see__concerns_nobody(api: Caller, body: dict[str, object]) -> None:
    impact = api.post(DRY, body).json["impact"]

    assert impact == {"connected": 3, "receive": 0, "lose": 0, "groups": [], "losing": [], "losing_omitted": 0}
