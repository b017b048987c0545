"""The mail that brings the link of an invitation: what is in it, and what is said where it is not taken."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from controlplane.config.values import Mail, MailSecurity
from controlplane.invitations.models import Invitation
from tests.support.mailbox import Mailbox, mailbox
from tests.web.conftest import SignIn

pytestmark = pytest.mark.django_db(transaction=True)
FORM = {
    "action": "make",
    "address": "eve@example.org",
    "role-1": "viewer",
    "environment-1": "prod",
    "days": "7",
    "reason": "joins",
}


@pytest.fixture
def post(settings: Settings) -> Iterator[Mailbox]:
    with mailbox() as running:
        mail = Mail("127.0.0.1", running.port, MailSecurity.NONE, "parley@example.org")
        settings.PARLEY = replace(settings.PARLEY, mail=mail)
        settings.EMAIL_BACKEND = "controlplane.notify.mailing.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", running.port
        settings.DEFAULT_FROM_EMAIL = "parley@example.org"
        yield running


def test_mail__has_the_link_that_is_shown_and_says_until_when(sign_in: SignIn, post: Mailbox) -> None:
    root = sign_in(None, "")

    shown = root.post("/users/invitations", FORM).content.decode()
    row = Invitation.objects.get()
    renewed = root.post("/users/invitations", {"action": "renew", "id": str(row.pk), "reason": "lost"}).content.decode()

    assert [each["To"] for each in post.received] == ["eve@example.org"] * 2
    links = []
    for mail, page in zip(post.received, (shown, renewed), strict=True):
        body = mail.get_body()
        assert body is not None
        text = body.get_content()
        [link] = [line for line in text.splitlines() if "/invitation/" in line]
        assert f'data-copy="{link}"' in page
        assert "admin invites you" in text
        assert f"{row.expires_at:%Y-%m-%d}" in text
        links.append(link)
    assert links[0] != links[1]
    assert "which was mailed" in shown


def test_mail__that_the_server_refuses__is_said_and_the_link_is_shown(sign_in: SignIn, post: Mailbox) -> None:
    post.refuses = "550 nobody of that name <b>"

    answer = sign_in(None, "").post("/users/invitations", FORM)

    text = answer.content.decode()
    assert answer.status_code == 201
    assert "The mail was not sent: The mail server refused the recipient: 550 nobody of that name &lt;b&gt;" in text
    assert "/invitation/" in text
    assert Invitation.objects.count() == 1


def test_mail__where_nothing_listens__is_said(sign_in: SignIn, post: Mailbox, settings: Settings) -> None:
    settings.EMAIL_PORT = 1

    answer = sign_in(None, "").post("/users/invitations", FORM)

    assert answer.status_code == 201
    assert "nothing listens at this host and port" in answer.content.decode()
