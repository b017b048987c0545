"""The inbox as a page."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.accounts.principal import Role
from controlplane.database.aliases import READER
from controlplane.notify.catalogue import Severity
from controlplane.notify.models import Notification
from tests.services.incidents.fleet import Fleet
from tests.web.conftest import HOSTILE, assert_harmless, page, queries

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def told(number: int, environment: str = "default", title: str = "") -> None:
    Notification.objects.create(
        event=number,
        at=timezone.now() + timedelta(seconds=number),
        kind="incident.opened",
        environment=environment,
        severity=Severity.PAGE.value,
        title=title or f"message-{number:02}",
        text="what and why",
        link="http://localhost/incidents/1",
    )


@pytest.mark.usefixtures("fleet")
def test_inbox__messages__newest_first_with_their_way_and_harmless(admin: Client) -> None:
    told(1, title=HOSTILE)
    told(2)

    shown = page(admin, "/messages")

    assert shown.index("message-02") < shown.index("what and why")
    assert 'href="http://localhost/incidents/1"' in shown
    assert "urgent" in shown
    assert_harmless(shown)


@pytest.mark.usefixtures("fleet")
def test_inbox__longer_than_a_page__goes_on(admin: Client) -> None:
    for number in range(60):
        told(number)

    first = page(admin, "/messages")

    assert ("message-59" in first, "message-00" in first) == (True, False)
    assert 'rel="next"' in first
    assert "message-00" in page(admin, f"/messages?before={Notification.objects.get(event=5).pk}")
    assert queries(admin, "/messages") <= 12


def test_inbox__rights_in_one_environment__nothing_of_others(person: Callable[..., Client], fleet: Fleet) -> None:
    told(1)
    stranger = person(Role.ADMIN, "prod")

    shown = page(stranger, "/messages")

    assert "message-01" not in shown
    page(stranger, "/messages?environment=default", 404)
