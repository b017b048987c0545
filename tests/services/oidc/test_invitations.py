"""Invitations where people sign in by the identity provider: accepted with that account, and bound to it."""

import re

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.models import RoleGrant, SignedInBrowser
from controlplane.config.oidc import LocalSignIn, Oidc
from controlplane.invitations.models import Invitation
from tests.services.oidc.conftest import configured, rights, sign_in, with_provider
from tests.support.openid_provider import Provider
from tests.web.conftest import USERS

pytestmark = pytest.mark.django_db(transaction=True)
FORM = {"action": "make", "role-1": "operator", "environment-1": "prod", "days": "7", "reason": "joins"}
PASSWORD = "correct horse battery"


def link(root: Client, **fields: str) -> str:
    answer = root.post("/users/invitations", {**FORM, **fields})
    found = re.search(r'data-copy="http://[^/"]+(/invitation/[^"]+)"', answer.content.decode())
    assert found is not None, answer.content.decode()
    return found[1]


@pytest.fixture
def root(site: Oidc) -> Client:
    user = USERS.objects.create_superuser("root", password=PASSWORD)
    client = Client()
    client.force_login(user)
    return client


def test_invitation__opened_by_a_person_of_the_provider__is_accepted_with_that_account(
    root: Client, provider: Provider
) -> None:
    browser = Client()
    browser.get(link(root, address="ana@example.org"))
    assert "Sign in with Staff ID" in browser.get("/invitation").content.decode()
    sign_in(provider, provider.add("s-1", "ana", "shop"), browser, leads_to="/invitation")

    asked = browser.get("/invitation").content.decode()
    before = rights("ana")
    answer = browser.post("/invitation")

    assert "Accept as ana" in asked
    assert answer["Location"] == "/account"
    assert rights("ana") - before == {("operator", "prod")}
    assert RoleGrant.objects.get(role="operator").provider_group == ""
    assert Invitation.objects.get().accepted_by == "ana"
    assert browser.get("/invitation").status_code == 404


def test_invitation__for_another_name__is_not_for_whoever_signs_in(root: Client, provider: Provider) -> None:
    browser = Client()
    browser.get(link(root, username="bea"))
    sign_in(provider, provider.add("s-1", "ana", "shop"), browser)

    answer = browser.post("/invitation")

    assert answer.status_code == 409
    assert "is for &#x27;bea&#x27;" in answer.content.decode()
    assert Invitation.objects.get().accepted_at is None


def test_invitation__where_superusers_alone_have_passwords__makes_no_account_with_one(
    root: Client, provider: Provider, settings: Settings
) -> None:
    path = link(root, username="bea")
    with_provider(settings, configured(provider, local_sign_in=LocalSignIn.BREAK_GLASS))
    browser = Client()
    browser.get(path)

    shown = browser.get("/invitation").content.decode()
    answer = browser.post("/invitation", {"new": PASSWORD, "again": PASSWORD})

    assert 'type="password"' not in shown
    assert answer.status_code == 409
    assert not USERS.objects.filter(username="bea").exists()


def test_inviter__whom_the_provider_puts_out__their_invitation_gives_nothing(
    root: Client, provider: Provider, settings: Settings
) -> None:
    ana = provider.add("s-1", "ana", "platform")
    path = link(sign_in(provider, ana), username="bea")
    ana.groups.clear()
    with_provider(settings, configured(provider), oidc_recheck_s=0)
    browser = Client()
    browser.get(path)

    answer = browser.post("/invitation", {"new": PASSWORD, "again": PASSWORD})

    assert answer.status_code == 403
    assert "may not invite anybody now" in answer.content.decode()
    assert not USERS.objects.filter(username="bea").exists()


def test_browser_that_came_by_the_provider__ended__nobody_vouches_for_it_any_more(
    root: Client, provider: Provider
) -> None:
    browser = sign_in(provider, provider.add("s-1", "ana", "shop"))
    assert browser.get("/account").status_code == 200
    user = USERS.objects.get(username="ana")
    row = SignedInBrowser.objects.get(user=user)

    root.post(f"/users/{user.pk}/access", {"action": "end-browser", "id": str(row.pk), "reason": "lost"})

    assert browser.get("/account").status_code == 302
    assert rights("ana") == set()
