"""What clients have, by xdsctl over HTTP: as tables and as the API's own rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from tests.api.test_holdings import fleet_at_r1, moved_to_r2
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NO, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def xdsctl(tmp_path: Path) -> Iterator[Xdsctl]:
    """For a server with two clients: `good` runs r2 of `pay`, `bad` refuses it and goes on with r1."""
    environment_default_ensure()
    fleet = fleet_at_r1("cart", "pay")
    good, bad = fleet.join("pay", node_id="good"), fleet.join("pay", "cart", "lost", node_id="bad")
    fleet.ack()
    moved_to_r2(fleet)
    fleet.ack(good)
    fleet.nack(bad, "pay: no such thing")
    fleet.write()
    _, token = api_token_create(name="test", scopes=ADMIN_SCOPES, actor=SYSTEM)
    with serving_web() as address:
        contexts = str(tmp_path / "contexts.json")
        yield Xdsctl({"XDSCTL_SERVER": address, "XDSCTL_TOKEN": token, "XDSCTL_CONFIG": contexts, "COLUMNS": "250"})


def test_get_clients__of_a_resource__lists_who_has_what_and_counts_all(xdsctl: Xdsctl) -> None:
    table = xdsctl("get", "clients", "--of", "cluster/pay")
    refusing = xdsctl("get", "clients", "--of", "cluster/pay", "--state", "nacked", "-o", "json")
    older = xdsctl("get", "clients", "--of", "cluster/pay", "--revision", "1", "-o", "json")
    nobody = xdsctl("get", "clients", "--of", "cluster/never")

    assert table.status == DONE, table
    title, *lines = table.out.splitlines()
    assert title.split() == ["CLIENT", "NODE", "STATE", "REVISION", "ACKED", "SINCE", "CODE", "MESSAGE"]
    assert {tuple(line.split()[1:5]) for line in lines} == {
        ("good", "ACKED", "r2", "r2"),
        ("bad", "NACKED", "r2", "r1"),
    }
    assert table.err == "ACKED: 1 r2; NACKED: 1 r2.\n"
    assert [(each["node_id"], each["message"]) for each in refusing.data] == [("bad", "pay: no such thing")]
    assert older.data == []
    assert nobody.err == "Nothing found.\n"
    assert xdsctl("get", "clients", "--of", "pay").status == USAGE


def test_get_resources__of_a_client_by_node_id__lists_what_it_has(xdsctl: Xdsctl) -> None:
    table = xdsctl("get", "resources", "--client", "bad")
    named = xdsctl("get", "resources", "--client", "bad", "-o", "name")
    told = xdsctl("get", "resources", "--client", "bad", "--state", "ERROR_SENT,NACKED", "-o", "json")
    too_early = xdsctl("get", "resources", "--client", "bad", "--at", "2001-07-01T12:00:00Z")
    unknown = xdsctl("get", "resources", "--client", "nobody")

    assert table.status == DONE, table
    assert [line.split()[:5] for line in table.out.splitlines()[1:]][::2] == [
        ["cluster", "cart", "ACKED", "r1", "r1"],
        ["cluster", "pay", "NACKED", "r2", "r1"],
    ]
    assert named.out.split() == ["cluster/cart", "cluster/lost", "cluster/pay"]
    assert [(each["name"], each["code"]) for each in told.data] == [("lost", "XDS2101"), ("pay", None)]
    assert (too_early.status, "is kept for 24 h" in too_early.err) == (NO, True)
    assert unknown.status == NO
