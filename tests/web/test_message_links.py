"""Every message leads to a page that is there for whoever may see what it is about (texts.md section 6)."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.changesets.services import change_set_create
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.journal.services import event_append
from controlplane.notify.catalogue import KINDS, LINK_CHARS
from controlplane.notify.models import Notification
from controlplane.notify.services.expanding import notifications_expand
from controlplane.notify.services.watching import ends_notice
from tests.services.incidents.fleet import Fleet
from tests.support.manifests import cluster
from tests.support.rollouts import rollout_begun
from tests.web.conftest import page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

# Of the whole installation, and so told to everybody. Only who administers sees tokens; others read there who does.
EVERYBODYS = {"channel.paused": "/messages", "token.expiring": "/tokens?kind=api&text=pay"}


def told(kind: str, **payload: object) -> Notification:
    """What becomes of an event of this kind."""
    environment = "" if kind in EVERYBODYS else "default"
    event_append(
        kind=kind, environment=environment, subject=kind, payload={"type": "cluster", "name": "pay", **payload}
    )
    notifications_expand()
    return Notification.objects.filter(kind=kind).latest("pk")


def path_of(message: Notification) -> str:
    assert message.link.startswith(settings.PARLEY.public_url)
    return message.link.removeprefix(settings.PARLEY.public_url) or "/"


def test_message__of_any_kind__leads_a_viewer_of_its_environment_to_a_page_about_it(
    person: Callable[..., Client], fleet: Fleet
) -> None:
    incident = str(Incident.objects.get().public_id)
    viewer = person(Role.VIEWER)
    rollout = rollout_begun(cluster("pay", connect_timeout="7s"), actor=SYSTEM)
    proposed = change_set_create(environment_key="default", title="more patience", actor=SYSTEM)
    about = {"incident": incident, "rollout": rollout, "change_set": proposed, "about": "incident", "key": incident}
    paths = {kind: path_of(told(kind, **about)) for kind in KINDS}
    by_hand = path_of(told("quarantine.released", incident=""))

    for kind, path in paths.items():
        page(viewer, path, 403 if kind == "token.expiring" else 200)
    page(viewer, by_hand)
    assert {kind: path for kind, path in paths.items() if kind in EVERYBODYS or path == "/"} == EVERYBODYS
    assert by_hand == "/e/default/resource?type=cluster&name=pay"


def test_message__about_a_name_that_fills_a_link__leads_to_its_environment(
    person: Callable[..., Client], fleet: Fleet
) -> None:
    message = told("certificate.expiring", name="€" * 300)

    assert len(message.link) < LINK_CHARS
    assert path_of(message) == "/e/default"
    page(person(Role.VIEWER), path_of(message))


@pytest.mark.parametrize("kind", ["api", "client"])
def test_message__about_a_token_that_ends__leads_to_it(admin: Client, kind: str) -> None:
    end = timezone.now() + timedelta(days=2)
    if kind == "api":
        api_token_create(name="deploy", scopes=ADMIN_SCOPES, actor=SYSTEM, expires_at=end)
    else:
        client_token_create(subject="deploy", environment="", actor=SYSTEM, expires_at=end)

    ends_notice()
    notifications_expand()
    path = path_of(Notification.objects.get(kind="token.expiring"))

    assert "deploy" in page(admin, path).partition("<tbody>")[2]
