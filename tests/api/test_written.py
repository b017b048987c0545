"""What a write is answered with: the change as whoever reads it before its build would find it."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Change
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.conftest import Answer, Caller, caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster, route, tls_secret

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"
BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
STEPS = {"mode": "steps", "steps": [{"clients": 1, "approve": True}, {"percent": 100}]}


@pytest.fixture
def fleet(environments: None) -> Fleet:
    """Two clients that run r1 of `pay`."""
    two = Fleet(2)
    publish(cluster("pay"), cluster("shop"))
    two.accept(held("pay", 1))
    digest()
    return two


def assert_as_read(api: Caller, written: Answer) -> None:
    assert written.status == 202, written.content
    answered = {key: value for key, value in written.json.items() if key != "changed"}
    assert answered == api.get(f"changes/{written.json['id']}").json


_WRITES: dict[str, Callable[[Caller], Answer]] = {
    "create": lambda api: api.put(f"{HERE}/resources/cluster/a?message=more", cluster("a")),
    "update": lambda api: api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="9s")),
    "with a warning": lambda api: api.put(f"{HERE}/resources/route/r", route("r", "nowhere")),
    "delete": lambda api: api.delete(f"{HERE}/resources/cluster/shop?accept_loss=9"),
    "apply": lambda api: api.post(
        f"{HERE}/apply",
        {"resources": [cluster("z"), route("r", "nowhere"), tls_secret("s", "key")], "owner": "team", "message": "m"},
    ),
    "restore": lambda api: api.post(f"{HERE}/resources/cluster/pay/revisions/2/restore"),
    "roll back": lambda api: api.post(
        f"{HERE}/rollback?accept_loss=9", {"to_epoch": 1, "reason": "all of it", "hold": False}
    ),
    "undo": lambda api: api.post(f"changes/{newest()}/undo?accept_loss=9", {"reason": "all of it"}),
}


def newest() -> str:
    return str(Change.objects.order_by("-generation")[0].public_id)


@pytest.mark.parametrize("mode", ["off", "steps"])
def test_write__of_each_kind__is_answered_as_the_change_is_read_before_its_build(fleet: Fleet, mode: str) -> None:
    api = caller(*ADMIN_SCOPES)
    publish(cluster("pay", connect_timeout="2s"))
    publish(cluster("pay", connect_timeout="3s"))
    if mode == "steps":
        assert api.patch(HERE, {"rollout": STEPS}).status == 200

    for kind, write in _WRITES.items():
        written = write(api)
        assert written.status == 202, (kind, written.content)
        assert_as_read(api, written)


def test_quarantine_and_release__are_answered_as_the_change_is_read_before_its_build(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(1))
    digest()
    (incident,) = api.get("incidents").json["results"]

    for act in ("quarantine", "release"):
        assert_as_read(api, api.post(f"incidents/{incident['id']}/{act}", {"reason": "breaks pay"}))


def test_put__into_a_fleet__reads_nothing_of_what_became_of_it(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)

    with CaptureQueriesContext(connection) as queries:
        assert api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="9s")).status == 202

    read = " ".join(each["sql"] for each in queries)
    assert not [table for table in ("incidents_", "clients_", "builder_") if table in read]
