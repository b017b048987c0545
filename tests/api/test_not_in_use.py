"""What clients hold and do not use yet, over REST and xdsctl (truth.md H5)."""

from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.clients.models import Client
from controlplane.database.aliases import READER
from tests.api.conftest import Caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.services.incidents.unused import a_while_later, asks, pay
from tests.support.manifests import endpoints
from tests.support.web_thread import serving_web
from tests.support.xdsctl import Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

UNUSED = "Held, not in use yet: it has not asked for endpoint 'pay-hosts'."
SENTENCE = "2 clients took cluster 'pay' and did not ask for endpoint 'pay-hosts'."


@pytest.fixture
def change(api: Caller) -> str:
    """A change that three clients acknowledged half a minute ago, of whom node-1 asked for what it needs."""
    fleet = Fleet(3)
    made = publish(pay(), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1))
    asks(fleet, "pay-hosts", who=slice(0, 1))
    asks(fleet, "other", who=slice(1, 2))
    a_while_later()
    return made


def test_change__held_and_not_in_use__counts_clients_and_says_what_they_did_not_ask_for(
    api: Caller, change: str
) -> None:
    found = api.get(f"changes/{change}").json

    assert found["counts"] == {"clients": 3, "acked": 3, "nacked": 0, "silent": 0, "not_in_use": 2}
    assert found["not_in_use"] == [{"type": "cluster", "name": "pay", "clients": 2, "message": SENTENCE}]
    assert found["status"] == "settled"


def test_holdings__held_and_not_in_use__is_said_in_rows_of_clients_and_of_resources_alike(
    api: Caller, change: str
) -> None:
    of_resource = api.get("environments/default/resources/cluster/pay/clients").json["results"]
    said = {each["node_id"]: (each["state"], each["message"]) for each in of_resource}
    of_clients = {}
    for client in Client.objects.all():
        (row,) = api.get(f"clients/{client.pk}/resources?type=cluster").json["results"]
        of_clients[client.node_id] = (row["state"], row["message"])

    unused = ("ACKED", UNUSED)
    assert said == of_clients == {"node-1": ("ACKED", None), "node-2": unused, "node-3": unused}


def test_xdsctl__held_and_not_in_use__says_it_of_the_change_the_client_and_the_resource(
    change: str, tmp_path: Path
) -> None:
    _, token = api_token_create(name="test", scopes=ADMIN_SCOPES, actor=SYSTEM)
    with serving_web() as address:
        config = str(tmp_path / "contexts.json")
        xdsctl = Xdsctl({"XDSCTL_SERVER": address, "XDSCTL_TOKEN": token, "XDSCTL_CONFIG": config, "COLUMNS": "250"})
        status = xdsctl("rollout", "status", change, "--spread")
        document = xdsctl("rollout", "status", change, "--spread", "--wait", "-o", "json").data
        resources = xdsctl("get", "resources", "--client", "node-2")
        clients = xdsctl("get", "clients", "--of", "cluster/pay")

    assert "clients  3: 3 acked, 0 nacked, 0 silent, 2 hold it and do not use all of it yet" in status.out
    assert f"not in use {SENTENCE}" in status.out
    assert "spread   3 of 3 clients took it: half after " in status.out
    assert (document["counts"]["not_in_use"], document["convergence"]["took"]) == (2, 3)
    assert UNUSED in resources.out
    assert clients.out.count(UNUSED) == 2
