"""An invitation is accepted once, whoever is quick, and by nobody once it is withdrawn; on both databases."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import SYSTEM, Role
from controlplane.accounts.signed_in import browser_seen, browsers_of
from controlplane.common.errors import ControlPlaneError, NotFound
from controlplane.invitations.models import Invitation
from controlplane.invitations.services import (
    invitation_accept,
    invitation_make,
    invitation_renew,
    invitation_withdraw,
)
from controlplane.invitations.values import Given
from controlplane.journal.models import AuditEvent
from tests.web.conftest import USERS

pytestmark = pytest.mark.usefixtures("database")
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings) -> None:
    # Slow hashes are Django's to test; here they would only make a minute pass.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def made(username: str = "") -> tuple[Invitation, str]:
    return invitation_make(
        username=username,
        address="eve@example.org",
        roles=[Given(Role.EDITOR, "default"), Given(Role.VIEWER, "")],
        days=7,
        actor=SYSTEM,
        reason="joins",
    )


def accept(token: str, username: str) -> str:
    try:
        return invitation_accept(token=token, username=username, password=PASSWORD, again=PASSWORD)
    except ControlPlaneError as error:
        return type(error).__name__
    finally:
        connections.close_all()


def test_invitation__accepted_by_four_at_one_moment__makes_one_account() -> None:
    token = made()[1]
    names = ["ana", "bea", "chris", "dana"]

    with ThreadPoolExecutor(len(names)) as threads:
        answers = list(threads.map(lambda name: accept(token, name), names))

    came = [answer for answer in answers if answer in names]
    assert len(came) == 1
    assert answers.count("NotFound") == len(names) - 1
    assert list(USERS.objects.values_list("username", flat=True)) == came
    assert set(RoleGrant.objects.values_list("role", "environment")) == {("editor", "default"), ("viewer", "")}
    assert AuditEvent.objects.filter(verb="invitation.accepted").count() == 1


def test_invitation__withdrawn_or_sent_anew__its_link_opens_nothing() -> None:
    withdrawn, first = made()
    renewed, second = made()
    invitation_withdraw(invitation_id=withdrawn.pk, actor=SYSTEM, reason="wrong")
    third = invitation_renew(invitation_id=renewed.pk, actor=SYSTEM, reason="lost")[1]

    answers = [accept(token, f"eve{number}") for number, token in enumerate((first, second, third))]

    assert answers == ["NotFound", "NotFound", "eve2"]


def test_invitation__that_cannot_be_accepted__leaves_nothing_behind() -> None:
    token = made()[1]
    USERS.objects.create_user("taken")

    with pytest.raises(ControlPlaneError):
        invitation_accept(token=token, username="taken", password=PASSWORD, again=PASSWORD)
    with pytest.raises(NotFound):
        invitation_accept(token="", username="eve", password=PASSWORD, again=PASSWORD)

    assert not RoleGrant.objects.exists()
    assert Invitation.objects.get().accepted_at is None
    assert accept(token, "eve") == "eve"


def test_browser__noted_by_two_processes_at_one_moment__is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    user = USERS.objects.create_user("eve")
    monkeypatch.setattr("controlplane.accounts.signed_in._seen.is_due", lambda _key: True)

    def note(_number: int) -> None:
        try:
            browser_seen(user_id=user.pk, session_key="k" * 32, address="192.0.2.1", user_agent="curl/8")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(note, range(4)))

    assert user.browsers.count() == 1
    assert browsers_of(user=user) == ()  # there is no such session
