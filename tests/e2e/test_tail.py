"""The live tail through real processes: a data plane that takes a change, seen by xdsctl while it does."""

import json

import pytest

from tests.support.manifests import cluster
from tests.support.stack import ROOT, Parley
from tests.support.xdsctl import DONE, NOT_ACCEPTED, tailing, watching, xdsctl_for
from xdsctl.commands.tail import line_of

pytestmark = pytest.mark.xdist_group("xdsctl")
KEYS = frozenset(json.loads((ROOT / "xdsctl/output.schema.json").read_text())["commands"]["tail"]["properties"])


def test_tail__client_comes_takes_a_cluster_asks_for_none_and_leaves__each_step_is_a_line(
    xdsctl_server: Parley,
) -> None:
    xdsctl_server.apply_and_publish(cluster("t"))
    with tailing(xdsctl_server, "--client", "t-node") as tail:
        with watching(xdsctl_server, "t-node", "t", "t-absent"):
            steps = tail.until("error", "acked")
        steps += tail.until("closed")

    kinds = [each["kind"] for each in steps]
    assert kinds[0] == "opened"
    assert {"opened", "subscribed", "sent", "error", "acked", "closed"} <= set(kinds)
    assert {each["node_id"] for each in steps} == {"t-node"}
    assert all(each.keys() == KEYS for each in steps)
    told = next(each for each in steps if each["kind"] == "error")
    assert [(each["name"], each["status"]) for each in told["errors"]] == [("t-absent", "NOT_FOUND")]
    assert "NOT_FOUND t-absent" in line_of(told, wide=False)


def test_tail__ended_by_hand__is_quiet_and_status_0(xdsctl_server: Parley) -> None:
    with tailing(xdsctl_server, "cluster/t") as tail:
        status = tail.interrupt()

    assert (status, tail.said) == (DONE, [])


def test_tail__token_is_wrong__one_sentence_and_8(xdsctl_server: Parley, tmp_path: object) -> None:
    said = xdsctl_for(xdsctl_server, tmp_path)("tail", "--token", "nonsense")  # type: ignore[arg-type]  # a path

    assert said.status == NOT_ACCEPTED
    assert said.err.count("\n") == 1
