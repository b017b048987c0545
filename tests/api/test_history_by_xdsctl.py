"""`rollout history`, `snapshots`, `compare`, `get changes` and `audit` of xdsctl, over HTTP: what is read of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from tests.api.test_by_xdsctl import xdsctl_as
from tests.services.incidents.fleet import publish
from tests.support.manifests import cluster
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NO, NOT_ACCEPTED, NOT_THERE, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def address() -> Iterator[str]:
    environment_default_ensure()
    with serving_web() as found:
        yield found


@pytest.fixture
def changes(address: str) -> list[str]:
    """The ids of four changes, of which the second and third came with one snapshot."""
    return [
        publish(cluster("pay")),
        publish(cluster("shop"), built=False),
        publish(cluster("pay", connect_timeout="2s")),
        publish(delete=("shop",)),
    ]


@pytest.fixture
def xdsctl(address: str, tmp_path: Path) -> Xdsctl:
    return xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


@pytest.mark.parametrize("command", [("rollout", "history"), ("snapshots", "list")])
def test_history__epochs__have_author_and_message_of_the_changes_they_were_built_for(
    xdsctl: Xdsctl, changes: list[str], command: tuple[str, ...]
) -> None:
    table = xdsctl(*command)
    rows = xdsctl(*command, "-o", "json").data

    lines = table.out.splitlines()
    assert lines[0].split() == ["EPOCH", "PUBLISHED", "RESOURCES", "AUTHOR", "MESSAGE"]
    assert [line.split()[0] for line in lines[1:]] == ["3", "2", "1"]
    assert all("dana" in line for line in lines[1:])
    assert lines[2].endswith("why (and 1 more)")
    assert [[each["id"] for each in row["changes"]] for row in rows] == [
        [changes[3]],
        changes[2:0:-1],
        [changes[0], rows[2]["changes"][1]["id"]],
    ]
    assert xdsctl(*command, "-o", "name").out.split() == ["3", "2", "1"]


def test_history__one_epoch__says_who_why_and_what_differs_from_the_one_before(
    xdsctl: Xdsctl, changes: list[str]
) -> None:
    text = xdsctl("rollout", "history", "--revision", "2").out
    found = xdsctl("rollout", "history", "--revision", "2", "-o", "json").data
    first = xdsctl("rollout", "history", "--revision", "1")

    assert "Epoch:      2" in text
    assert f"  {changes[2]}  " in text
    assert "Differs:    from epoch 1 in 2" in text
    assert "  updated  cluster/pay  /connect_timeout" in text
    assert "  created  cluster/shop" in text
    assert (found["before"], found["count"]) == (1, 2)
    assert "no snapshot before it is kept" in first.out


def test_history__of_a_resource__its_revisions_and_one_of_them(xdsctl: Xdsctl, changes: list[str]) -> None:
    listed = xdsctl("rollout", "history", "cluster/pay")
    one = xdsctl("rollout", "history", "cluster/pay", "--revision", "2")
    none = xdsctl("rollout", "history", "cluster/pay", "--revision", "9")
    mistyped = xdsctl("rollout", "history", "pay")

    assert [line.split()[0] for line in listed.out.splitlines()] == ["REVISION", "r2", "r1"]
    assert f"Change:    {changes[2]}" in one.out
    assert "Author:    dana" in one.out
    assert (none.status, none.err) == (NOT_THERE, "error: There is no revision r9 of cluster/pay in 'default'.\n")
    assert mistyped.status == USAGE


def test_snapshot__shown__its_changes_and_counts(xdsctl: Xdsctl, changes: list[str]) -> None:
    text = xdsctl("snapshots", "show", "2").out

    assert "Resources:  2 (cluster 2)" in text
    assert "Held back:  nothing" in text
    assert text.count("  dana  why") == 2


def test_compare__two_epochs__a_line_for_each_resource_and_status_1(xdsctl: Xdsctl, changes: list[str]) -> None:
    said = xdsctl("compare", "1", "3")
    patch = xdsctl("compare", "1", "3", "--text")
    same = xdsctl("compare", "3")
    names = xdsctl("compare", "2", "3", "-o", "name")
    absent = xdsctl("compare", "1", "99")

    assert said.status == NO
    assert said.out.splitlines()[1].split() == ["updated", "cluster", "pay", "/connect_timeout"]
    assert said.err == "1 resource differs.\n"
    assert "+connect_timeout: 2s" in patch.out
    assert (same.status, same.err) == (DONE, "No difference.\n")
    assert names.out == "cluster/shop\n"
    assert absent.status == NOT_THERE


def test_audit__both_names__are_one_command(xdsctl: Xdsctl, changes: list[str]) -> None:
    by_actor = xdsctl("audit", "--actor", "dana", "--since", "1h", "-o", "json").data

    assert {row["verb"] for row in by_actor} == {"change.saved"}
    assert by_actor == xdsctl("get", "audit", "--actor", "dana", "--since", "1h", "-o", "json").data


def test_changes__filters__are_the_servers_and_each_line_says_what_became_of_it(
    xdsctl: Xdsctl, changes: list[str]
) -> None:
    by_dana = xdsctl("get", "changes", "--author", "dana")
    of_shop = xdsctl("get", "changes", "--resource", "cluster/shop", "-o", "name").out.split()
    newest = xdsctl("get", "changes", "--kind", "resources", "--limit", "1", "-A", "-o", "json").data
    narrow = ("--since", "1h", "--findings", "without", "--text", "why")

    title, *lines = by_dana.out.splitlines()
    assert title.split() == ["AT", "CHANGE", "AUTHOR", "KIND", "WROTE", "STATUS", "MESSAGE"]
    assert [line.split()[1:5] for line in lines] == [[each, "dana", "resources", "1"] for each in reversed(changes)]
    assert of_shop == [changes[3], changes[1]]
    assert [row["id"] for row in newest] == [changes[3]]
    assert xdsctl("get", "changes", *narrow, "-o", "name").out.split() == changes[::-1]
    assert xdsctl("get", "changes", *narrow, "--until", "1h").err == "Nothing found.\n"
    assert xdsctl("get", "changes", "--kind", "colour").status == USAGE
    assert xdsctl("get", "changes", "-e", "nowhere").status == NOT_THERE


def test_channels__without_the_right__not_accepted(address: str, tmp_path: Path) -> None:
    viewer = xdsctl_as(address, tmp_path, Scope(Role.VIEWER, "default"))

    assert viewer("channels", "list").status == NOT_ACCEPTED
