"""Assigning and muting incidents, comments and ticket links by xdsctl, over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, Role
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from tests.api.test_by_xdsctl import xdsctl_as
from tests.api.test_facts import BAD
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def xdsctl(tmp_path: Path) -> Iterator[Xdsctl]:
    environment_default_ensure()
    with serving_web() as address:
        yield xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


@pytest.fixture
def incident(xdsctl: Xdsctl) -> str:
    """One client refuses r2 of `pay`."""
    publish(cluster("pay"))
    fleet = Fleet(2)
    fleet.accept(held("pay", 1))
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(1))
    digest()
    return str(Incident.objects.get().public_id)


def test_incident__assigned_muted_and_mended_next__says_so_in_one_line(xdsctl: Xdsctl, incident: str) -> None:
    user = get_user_model().objects.create_user("mia")
    RoleGrant.objects.create(user=user, role=Role.VIEWER.value, environment="default")

    assigned = xdsctl("incidents", "assign", incident, "--person", "mia")
    muted = xdsctl("incidents", "mute", incident, "--until", "8h", "--reason", "r3 comes")
    mine = xdsctl("incidents", "list", "--assignee", "person:mia", "-o", "name")

    assert (assigned.status, assigned.out) == (DONE, f"{incident} open  mia\n")
    assert muted.status == DONE
    assert ": r3 comes" in muted.out
    assert mine.out == f"{incident}\n"
    assert "muted until" in xdsctl("incidents", "show", incident).out
    assert "muted" not in xdsctl("incidents", "unmute", incident).out
    assert xdsctl("incidents", "resolve", incident, "--next-revision").out.startswith(f"{incident} acknowledged")
    assert xdsctl("incidents", "assign", incident).out == f"{incident} acknowledged\n"
    both = xdsctl("incidents", "assign", incident, "--person", "mia", "--team", "x")
    assert both.status == USAGE


def test_comments__added_listed_edited_and_deleted(xdsctl: Xdsctl, incident: str) -> None:
    added = xdsctl("comments", "add", "Why 2s?\nSee PAY-1.", "--resource", "cluster/pay", "-o", "name")
    xdsctl("comments", "add", "looking", "--incident", incident)
    public_id = added.out.strip()

    assert added.status == DONE
    (row,) = json.loads(xdsctl("comments", "list", "--resource", "cluster/pay", "-o", "json").out)
    assert (row["id"], row["text"]) == (public_id, "Why 2s?\nSee PAY-1.")
    assert "Why 2s? See PAY-1." in xdsctl("comments", "list", "--resource", "cluster/pay").out
    assert "looking" in xdsctl("comments", "list", "--incident", incident).out
    assert xdsctl("comments", "edit", public_id, "Why 3s?").status == DONE
    assert xdsctl("comments", "delete", public_id).status == DONE
    assert "Why" not in xdsctl("comments", "list", "--resource", "cluster/pay").out
    assert xdsctl("comments", "list").status == USAGE


def test_ticket_links__added_listed_and_deleted(xdsctl: Xdsctl) -> None:
    made = xdsctl("ticket-links", "add", "PAY-{number}", "https://jira.example/browse/PAY-{number}", "-o", "name")

    assert made.status == DONE
    shown = xdsctl("ticket-links", "list").out
    assert "PAY-{number}" in shown
    assert "default" in shown
    assert xdsctl("ticket-links", "delete", made.out.strip()).status == DONE
    assert "PAY" not in xdsctl("ticket-links", "list").out
