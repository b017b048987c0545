"""Sudo mode of people who come by the identity provider: it asks them again, and says when."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from joserfc import jwt

from controlplane.config.oidc import Oidc
from tests.services.oidc.conftest import Later, begun, came_back, sign_in
from tests.support.openid_provider import Provider

pytestmark = pytest.mark.django_db(transaction=True)
FORM = {"action": "make-client", "subject": "pay", "environment": "default", "days": "7"}
ASKED = {**FORM, "sudo_asked": "1"}


def says(provider: Provider, seconds_ago: float | None) -> None:
    """Have the provider say that whoever signs in did so that long ago; None: have it say nothing."""

    def forge(header: dict[str, Any], claims: dict[str, Any], key: Any) -> str:
        claims.pop("auth_time", None)
        if seconds_ago is not None:
            claims["auth_time"] = int(timezone.now().timestamp() - seconds_ago)
        return jwt.encode({"alg": "RS256", "kid": header["kid"]}, claims, key)

    provider.forge = forge


def again(provider: Provider, browser: Client, who: Any) -> Any:
    answer = browser.get("/login/oidc?again=1")
    assert "prompt=login" in answer["Location"]
    assert "max_age=0" in answer["Location"]
    return came_back(browser, provider.signed_in(answer["Location"], who))


def test_act__of_somebody_who_just_signed_in_there__is_done_and_an_old_sign_in_is_no_proof(
    site: Oidc, provider: Provider
) -> None:
    ana = provider.add("ana", "ana", "platform")
    says(provider, 10)
    fresh = sign_in(provider, ana)
    says(provider, 3_600)
    stale = sign_in(provider, ana)
    says(provider, None)
    silent = sign_in(provider, ana)

    answers = [each.post("/tokens?kind=client", FORM) for each in (fresh, stale, silent)]

    assert [b"Is it you?" in each.content for each in answers] == [False, True, True]
    assert b"Confirm at Staff ID" in answers[1].content
    assert b'name="sudo_password"' not in answers[1].content


def test_act__confirmed_at_the_provider__goes_on_with_what_was_typed(site: Oidc, provider: Provider) -> None:
    ana = provider.add("ana", "ana", "platform")
    says(provider, None)
    browser = sign_in(provider, ana)
    session = browser.cookies["sessionid"].value

    early = browser.post("/tokens?kind=client", ASKED)
    says(provider, 0)
    confirmed = again(provider, browser, ana)
    done = browser.post("/tokens?kind=client", ASKED)

    assert early.status_code == 422
    assert b"has not confirmed it yet" in early.content
    assert (confirmed.status_code, done.status_code) == (200, 201)
    assert browser.cookies["sessionid"].value == session  # nobody was signed in by it


@pytest.mark.parametrize("how", ["by an earlier sign-in", "without a time", "as somebody else"])
def test_act__not_confirmed__is_not_done(how: str, site: Oidc, provider: Provider, later: Later) -> None:
    ana, bob = provider.add("ana", "ana", "platform"), provider.add("bob", "bob", "platform")
    says(provider, None)
    browser = sign_in(provider, ana)
    says(provider, {"by an earlier sign-in": 120, "without a time": None, "as somebody else": 0}[how])

    answer = again(provider, browser, bob if how == "as somebody else" else ana)

    assert (answer.status_code, b"Not confirmed" in answer.content) == (422, True)
    assert browser.post("/tokens?kind=client", ASKED).status_code == 422
    assert browser.get("/account").status_code == 200
    assert b"ana" in browser.get("/account").content


def test_again__of_nobody_who_is_signed_in__is_a_sign_in(site: Oidc, provider: Provider) -> None:
    ana, browser = provider.add("ana", "ana", "platform"), Client()

    url = str(browser.get("/login/oidc?again=1")["Location"])
    answer = came_back(browser, provider.signed_in(url, ana))

    assert "prompt=" not in url
    assert answer.status_code == 302


def test_second_factor__of_somebody_from_the_provider__is_the_providers_matter(site: Oidc, provider: Provider) -> None:
    ana = provider.add("ana", "ana", "platform")
    says(provider, 0)
    browser = sign_in(provider, ana)

    page = browser.get("/account/second-factor")
    refused = browser.post("/account/second-factor", {"action": "begin-app"})

    assert b"If a second factor is asked for, it is asked for there." in page.content
    assert refused.status_code == 409
    assert begun(Client())
