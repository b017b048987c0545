"""What clients have, by xdsctl over HTTP: as tables and as the API's own rows."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.api.answers import moment
from controlplane.catalog.services import environment_default_ensure
from controlplane.clients.clock import database_now
from controlplane.clients.models import HoldingMove, Stream, Subscription
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.api.test_holdings import fleet_at_r1, moved_to_r2
from tests.services.incidents.fleet import revision
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NO, NOT_THERE, UNDECIDED, USAGE, Xdsctl

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
    assert unknown.status == NOT_THERE


def test_explain__at_a_time__says_what_the_client_had_then_by_which_snapshot(xdsctl: Xdsctl) -> None:
    ten = timedelta(minutes=10)
    SnapshotRow.objects.update(at=F("at") - ten)
    Stream.objects.update(opened_at=F("opened_at") - ten)
    Subscription.objects.update(held_at=F("held_at") - ten)
    HoldingMove.objects.update(at=F("at") - ten)
    now = database_now()
    then, before = moment(now - timedelta(minutes=5)), moment(now - timedelta(minutes=15))

    had = xdsctl("explain", "good", "cluster", "pay", "--at", then)
    as_json = xdsctl("explain", "good", "cluster", "pay", "--at", then, "-o", "json")
    refused = xdsctl("explain", "bad", "cluster", "pay", "--at", then)
    by_epoch = xdsctl("explain", "good", "cluster", "pay", "--at", "1")
    too_early = xdsctl("explain", "good", "cluster", "pay", "--at", before)
    Stream.objects.update(opened_at=now)
    absent = xdsctl("explain", "good", "cluster", "pay", "--at", then)

    assert (had.status, as_json.data["time"], as_json.data["at"]) == (DONE, then, 2)
    assert f"YES     client good (env default) had cluster 'pay' at {then}, in snapshot 2" in had.out
    assert (refused.status, "did not get cluster 'pay' at" in refused.out) == (NO, True)
    assert (by_epoch.status, "has cluster 'pay' in snapshot 1\n" in by_epoch.out) == (DONE, True)
    assert (too_early.status, "Nothing was published in 'default' yet at" in too_early.err) == (NOT_THERE, True)
    assert (absent.status, "may or may not have had" in absent.out) == (UNDECIDED, True)
    assert xdsctl("explain", "good", "cluster", "pay", "--at", "yesterday").status == NO


def test_clients_diff__one_refused_what_the_other_runs__lists_what_each_has_by_name(xdsctl: Xdsctl) -> None:
    differ = xdsctl("clients", "diff", "good", "bad")
    as_json = xdsctl("clients", "diff", "good", "bad", "-o", "json")
    same = xdsctl("clients", "diff", "good", "good")

    r1, r2 = revision("pay", 1).version, revision("pay", 2).version
    assert differ.status == NO, differ
    title, cart, lost, pay = differ.out.splitlines()
    assert title.split() == ["TYPE", "NAME", "good", "bad"]
    assert "does not ask" in cart
    assert "ERROR_SENT XDS2101" in lost
    assert f"ACKED r2, version {r2}" in pay
    assert f"NACKED r2, version {r2}, goes on with version {r1}" in pay
    assert [(each["type"], each["name"]) for each in as_json.data] == [
        ("cluster", "cart"),
        ("cluster", "lost"),
        ("cluster", "pay"),
    ]
    assert (same.status, same.out, same.err) == (DONE, "", "Nothing found.\nThey have the same.\n")
