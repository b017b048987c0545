"""`xdsctl watch`, `resolve` and `doctor --as-client` against Parley's ADS server, with each exit status."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support.ads import Running, running
from tests.support.ports import free_ports
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route
from xdsctl.app import app

GLOB = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/d/*"
MEMBER = GLOB.replace("*", "one")
DONE, NO, USAGE, NO_ANSWER, _, UNDECIDED = range(6)


@pytest.fixture(scope="module")
def ads() -> Iterator[str]:
    """The address of a server in a thread of its own: commands run an event loop, too."""
    started: list[Running] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with running() as run:
            run.publish(
                eds_cluster("pay"), assignment("pay", 9000), api_listener("svc", "svc"), route("svc", "pay"),
                api_listener("broken", "broken"), route("broken", "lost"), assignment(MEMBER, 1),
            )  # fmt: skip
            started.append(run)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    yield started[0].address
    stop.set()
    thread.join()


def xdsctl(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def data(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.mark.parametrize("variant", [(), ("--delta",)], ids=["sotw", "delta"])
def test_watch__resources_that_are_there_and_not__shows_states_and_says_no(ads: str, variant: tuple[str, ...]) -> None:
    result = xdsctl("watch", "cluster", "pay", "lost", "--ads", ads, "--once", "-o", "json", *variant)

    rows = {row["name"]: row for row in data(result)}
    assert result.exit_code == NO
    assert (rows["pay"]["state"], rows["lost"]["state"]) == ("acked", "received_error")
    assert rows["pay"]["version"]
    assert "XDS2101" in rows["lost"]["error"]


def test_watch__everything_there__is_done(ads: str) -> None:
    result = xdsctl("watch", "cluster", "pay", "--ads", ads, "--once")

    assert result.exit_code == DONE
    assert "acked" in result.stdout


@pytest.mark.nightly  # a process of its own
def test_watch__into_a_file__writes_a_line_for_each_change_at_once(ads: str) -> None:
    command = [sys.executable, "-m", "xdsctl", "watch", "cluster", "pay", "lost", "--ads", ads]
    told: list[list[str]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line.split("  "))
            if {(each[1], each[2]) for each in told} >= {("pay", "acked"), ("lost", "received_error")}:
                break
        process.terminate()

    assert [each[:3] for each in told[:2]] == [["cluster", "pay", "requested"], ["cluster", "lost", "requested"]]
    assert [each[4] for each in told if each[2] == "acked"] == ["-\n"]
    assert ["XDS2101" in each[4] for each in told if each[2] == "received_error"] == [True]


def test_watch__nack_drill__refuses_with_the_words_given(ads: str) -> None:
    result = xdsctl("watch", "cluster", "pay", "--ads", ads, "--once", "--nack", "pay=too blue", "-o", "json")

    assert result.exit_code == NO
    assert data(result)[0]["state"] == "nacked"
    assert "too blue" in data(result)[0]["error"]


@pytest.mark.parametrize("variant", [(), ("--delta",)], ids=["sotw", "delta"])
def test_watch__collections__shows_their_members_with_their_states(ads: str, variant: tuple[str, ...]) -> None:
    everything = xdsctl("watch", "cluster", "*", "--ads", ads, "--once", "-o", "json", *variant)
    glob = xdsctl("watch", "endpoint", GLOB, "--ads", ads, "--once", "-o", "json", *variant)

    assert (everything.exit_code, glob.exit_code) == (DONE, DONE)
    assert [(row["name"], row["state"]) for row in data(everything)] == [("pay", "acked")]
    assert [(row["name"], row["state"]) for row in data(glob)] == [(MEMBER, "acked")]


def test_watch__collections_that_cannot_be_asked_for__say_so_by_their_own_names(ads: str) -> None:
    result = xdsctl("watch", "route", GLOB, "*", "--ads", ads, "--once", "-o", "json")

    rows = {row["name"]: row for row in data(result)}
    assert result.exit_code == NO
    assert rows[GLOB]["state"] == rows["*"]["state"] == "refused"
    assert "but a envoy.config.route.v3.RouteConfiguration is asked for" in rows[GLOB]["error"]
    assert "only Cluster, Listener, ScopedRouteConfiguration have it" in rows["*"]["error"]


def test_watch__collection_without_members__is_in_error(ads: str) -> None:
    result = xdsctl("watch", "endpoint", GLOB.replace("/d/", "/e/"), "--ads", ads, "--once", "-o", "json")

    (row,) = data(result)
    assert (result.exit_code, row["state"], "XDS2101" in row["error"]) == (NO, "received_error", True)


def test_watch__nobody_listens__is_no_answer() -> None:
    (port,) = free_ports(1)

    assert xdsctl("watch", "cluster", "pay", "--ads", f"127.0.0.1:{port}", "--once").exit_code == NO_ANSWER


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("clusters", "pay", "--ads", "127.0.0.1:1"), "is no resource type"),
        (("cluster", "pay", "--ads", "127.0.0.1:1", "--nack", "pay"), "NAME=TEXT"),
        (("cluster", "pay", "--ads", "127.0.0.1:1", "--cert", "c"), "go together"),
        (("cluster", "pay", "--bootstrap", "/no/such/file"), "cannot be read"),
        (("cluster", "pay"), "Name a server with --ads"),
    ],
)
def test_watch__that_makes_no_sense__is_wrong_usage(
    arguments: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRPC_XDS_BOOTSTRAP", raising=False)
    monkeypatch.delenv("GRPC_XDS_BOOTSTRAP_CONFIG", raising=False)

    result = xdsctl("watch", *arguments)

    assert result.exit_code == USAGE
    assert text in result.stderr


def test_resolve__whole_tree__shows_the_endpoints(ads: str, tmp_path: Path) -> None:
    bootstrap = tmp_path / "bootstrap.json"
    server = {"server_uri": ads, "channel_creds": [{"type": "insecure"}]}
    bootstrap.write_text(json.dumps({"xds_servers": [server], "node": {"id": "me"}}))

    result = xdsctl("resolve", "xds:///svc", "--bootstrap", str(bootstrap))

    assert result.exit_code == DONE
    assert "cluster  pay  127.0.0.1:9000  (xDS node ID:me)" in result.stdout


def test_resolve__missing_cluster_or_listener__says_which_and_why(ads: str) -> None:
    branch = xdsctl("resolve", "xds:///broken", "--ads", ads, "-o", "json")
    root = xdsctl("resolve", "xds:///nowhere", "--ads", ads)

    assert (branch.exit_code, root.exit_code) == (NO, NO)
    assert "CDS resource lost: NOT_FOUND" in data(branch)["clusters"]["lost"]["error"]
    assert "LDS resource nowhere: NOT_FOUND" in root.stderr


def test_resolve__nonsense_and_no_time__have_their_own_status(ads: str) -> None:
    assert xdsctl("resolve", "xds:///", "--ads", ads).exit_code == USAGE
    assert xdsctl("resolve", "xds:///svc", "--ads", ads, "--timeout", "0ms").exit_code == UNDECIDED


def test_doctor__as_client__checks_the_way_of_a_data_plane(ads: str) -> None:
    result = xdsctl("doctor", "--as-client", "--ads", ads, "--node", "me", "--resource", "cluster/pay", "-o", "json")

    rows = {row["check"]: row for row in data(result)}
    assert result.exit_code == DONE
    assert {name: row["state"] for name, row in rows.items()} == {
        "bootstrap": "ok", "identity": "ok", "stream": "ok", "errors": "ok", "cluster pay": "ok",
    }  # fmt: skip
    assert rows["identity"]["found"] == "node 'me', no TLS"
    assert rows["errors"]["found"].startswith("the server says why")


def test_doctor__as_client__missing_resource_or_server__fails_with_what_to_do(ads: str) -> None:
    (port,) = free_ports(1)

    missing = xdsctl("doctor", "--as-client", "--ads", ads, "--resource", "route/lost", "-o", "json")
    away = xdsctl("doctor", "--as-client", "--ads", f"127.0.0.1:{port}", "-o", "json")
    wrong = xdsctl("doctor", "--as-client", "--ads", ads, "--resource", "lost")

    assert (missing.exit_code, away.exit_code, wrong.exit_code) == (NO, NO_ANSWER, USAGE)
    assert "XDS2101" in data(missing)[-1]["found"]
    assert "xdsctl explain" in data(missing)[-1]["fix"]
    assert "cannot be reached" in data(away)[-1]["found"]
