"""While a sign-in by the identity provider lasts: what it takes back is gone within a minute, by every door."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.models import ProviderSignIn, RoleGrant
from controlplane.accounts.principal import Role, Scope
from controlplane.accounts.selectors import id_of_user, principal_by_id, user_principal
from controlplane.accounts.services import api_token_create
from controlplane.api.authentication import principal_again
from controlplane.catalog.services import environment_create
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.config.oidc import Oidc, group_roles
from controlplane.journal.models import AuditEvent
from controlplane.oidc.sealing import tokens_open
from tests.services.oidc.conftest import Later, begun, came_back, configured, rights, sign_in, with_provider
from tests.services.oidc.test_signing_in import by_another_key, saying, whose
from tests.support.openid_provider import Person, Provider
from tests.web.conftest import DANA, USERS

RESOURCES = "/api/v1/environments/default/resources"
AWAY: dict[str, tuple[int, bytes]] = {
    "answers 503": (503, b"{}"),
    "answers no JSON": (200, b"<html>"),
    "answers a list": (200, b"[1]"),
    "answers without end": (200, b" " * 300_000 + b"{}"),
    "answers what nests without end": (200, b"[" * 200_000),
    "leads elsewhere": (302, b"{}"),
    "wants less of it": (429, b'{"message": "too many requests"}'),
    "says an error that is none": (400, b'{"error": ["invalid_grant"]}'),
    "wants another client": (401, b'{"error": "invalid_client", "error_description": "\\"?\\u00e9"}'),
}


@pytest.fixture
def ana(site: Oidc, provider: Provider) -> Person:
    return provider.add("s-1", "ana", "platform")


def token_of(name: str, *scopes: Scope) -> str:
    """A personal token of somebody."""
    principal = user_principal(USERS.objects.get(username=name))
    assert principal is not None
    return api_token_create(name=f"token of {name}", scopes=scopes or [Scope(Role.ADMIN, None)], actor=principal)[1]


def by_token(token: str) -> Any:
    return Client().get(RESOURCES, headers={"Authorization": f"Bearer {token}"})


def test_group_taken_away__a_minute_later__page_session_and_token_may_nothing_more(
    ana: Person, provider: Provider, later: Later
) -> None:
    browser = sign_in(provider, ana)
    token = token_of("ana")
    assert (browser.get("/users").status_code, browser.get(RESOURCES).status_code) == (200, 200)
    assert by_token(token).status_code == 200

    ana.groups = []
    later(46)

    assert browser.get("/users").status_code == 403
    assert browser.get(RESOURCES).status_code == 404
    assert by_token(token).status_code == 404
    assert rights("ana") == set()
    taken = AuditEvent.objects.get(verb="role.taken")
    assert (taken.subject, taken.detail["role"]) == ("ana", "admin")
    assert taken.detail["reason"] == "by the group platform at the identity provider"


def test_group_taken_away__only_a_token_is_used__it_loses_the_rights_as_well(
    ana: Person, provider: Provider, later: Later
) -> None:
    sign_in(provider, ana)
    token = token_of("ana", Scope(Role.VIEWER, "default"))
    assert by_token(token).status_code == 200

    ana.groups = []
    later(46)

    assert by_token(token).status_code == 404


@pytest.mark.parametrize("opened_by", ["session", "token"])
def test_group_taken_away__what_is_open__loses_the_rights_as_well(
    ana: Person, provider: Provider, later: Later, opened_by: str
) -> None:
    browser = sign_in(provider, ana)
    request = HttpRequest()
    request.session = browser.session
    if opened_by == "token":
        request.META["HTTP_AUTHORIZATION"] = f"Bearer {token_of('ana')}"
    before = principal_again(request)
    assert before is not None
    assert before.may(Role.VIEWER, "default")

    ana.groups = []
    later(46)

    again = principal_again(request)
    assert again is not None
    assert again.scopes == ()


def test_sign_in_ended__what_is_open_by_the_session__is_nobody_s(ana: Person, provider: Provider, later: Later) -> None:
    request = HttpRequest()
    request.session = sign_in(provider, ana).session
    ana.active = False
    later(46)

    assert principal_again(request) is None


def test_sign_in__on_every_database__begins_is_asked_again_and_ends(
    database: str, provider: Provider, settings: Settings, later: Later
) -> None:
    with_provider(settings, configured(provider))
    ana = provider.add("s-1", "ana", "shop")
    browser = sign_in(provider, ana)
    assert rights("ana") == {("editor", "default")}  # there is no `prod` here

    ana.groups = ["platform"]
    later(46)
    assert browser.get("/users").status_code == 200
    ana.active = False
    later(46)

    assert browser.get("/users").status_code == 302
    assert not ProviderSignIn.objects.exists()


def test_group_added__within_a_minute__gives_its_roles(ana: Person, provider: Provider, later: Later) -> None:
    browser = sign_in(provider, ana)
    ana.groups = ["shop"]
    later(46)

    browser.get("/")

    assert rights("ana") == {("editor", "default"), ("viewer", "prod")}


def test_provider__most_requests__is_not_asked(ana: Person, provider: Provider, later: Later) -> None:
    browser = sign_in(provider, ana)
    token = token_of("ana")
    before = provider.asked.copy()

    for _ in range(4):
        later(11)
        assert browser.get("/users").status_code == 200
        assert by_token(token).status_code == 200

    assert provider.asked == before
    later(2)
    browser.get("/users")
    by_token(token)
    assert provider.asked - before == {"/token": 1}


def test_provider__groups_only_at_userinfo__is_asked_there(ana: Person, provider: Provider, later: Later) -> None:
    provider.claims_in_token = False
    browser = sign_in(provider, ana)
    ana.groups = ["shop"]
    later(46)

    browser.get("/")

    assert rights("ana") == {("editor", "default"), ("viewer", "prod")}


def test_provider__gives_no_refresh_token__is_asked_by_the_access_token(
    ana: Person, provider: Provider, later: Later
) -> None:
    provider.refreshes = False
    browser = sign_in(provider, ana)
    ana.groups = ["shop"]
    later(46)
    browser.get("/")
    assert rights("ana") == {("editor", "default"), ("viewer", "prod")}

    provider.end_sessions(ana)
    later(46)

    assert browser.get("/users")["Location"] == "/login?next=/users"


@pytest.mark.parametrize("how", ["account turned off", "session ended", "forged", "about somebody else"])
def test_provider__does_not_vouch_any_more__ends_the_sign_in_and_every_right(
    ana: Person, provider: Provider, later: Later, how: str
) -> None:
    browser = sign_in(provider, ana)
    token = token_of("ana")
    RoleGrant.objects.create(user=USERS.objects.get(username="ana"), role="operator", environment="prod")
    match how:
        case "account turned off":
            ana.active = False
        case "session ended":
            provider.end_sessions(ana)
        case "forged":
            provider.forge = by_another_key
        case "about somebody else":
            provider.forge = saying(sub="s-2")
    later(46)

    answer = browser.get("/users")

    assert (answer.status_code, answer["Location"]) == (302, "/login?next=/users")
    assert "does not vouch for it any more" in browser.get("/login?next=/users").content.decode()
    assert browser.get(RESOURCES).status_code == 401
    assert rights("ana") == set()
    assert by_token(token).status_code == 404
    assert not ProviderSignIn.objects.exists()
    assert AuditEvent.objects.filter(verb="login.ended", subject="ana").count() == 1


@pytest.mark.parametrize(
    ("path", "how"),
    [
        (path, how)
        for path in ("/token", "/.well-known/openid-configuration", "/keys", "/userinfo")
        for how in AWAY
        if how not in ("wants another client", "says an error that is none") or path == "/token"
    ],
)
def test_provider__cannot_be_asked__its_last_word_holds_for_a_while_and_then_ends(
    site: Oidc, provider: Provider, settings: Settings, later: Later, path: str, how: str
) -> None:
    provider.claims_in_token = path != "/userinfo"
    ana = provider.add("s-1", "ana", "platform")
    browser = sign_in(provider, ana)
    with_provider(settings, site)  # a process that knows nothing of the provider yet
    ana.groups = []
    provider.answers[path] = AWAY[how]

    later(46)
    first = browser.get("/users").status_code
    later(840)
    last = browser.get("/users").status_code
    later(60)
    gone = browser.get("/users")

    assert (first, last) == (200, 200)
    assert (gone.status_code, gone["Location"]) == (302, "/login?next=/users")
    assert rights("ana") == set()


def test_provider__is_back_before_the_time_is_up__is_asked_again_and_the_sign_in_goes_on(
    ana: Person, provider: Provider, later: Later, settings: Settings, site: Oidc
) -> None:
    browser = sign_in(provider, ana)
    provider.answers["/token"] = (503, b"")
    later(46)
    assert browser.get("/users").status_code == 200

    provider.answers.clear()
    with_provider(settings, site)  # the pause after a failure counts real time
    ana.groups = ["shop"]
    later(46)

    assert browser.get("/users").status_code == 403
    assert rights("ana") == {("editor", "default"), ("viewer", "prod")}


def test_provider__is_silent__one_waits_until_the_deadline_and_nobody_else(
    ana: Person, provider: Provider, later: Later, settings: Settings
) -> None:
    one, other = sign_in(provider, ana), sign_in(provider, provider.add("s-2", "bob", "platform"))
    with_provider(settings, configured(provider), oidc_timeout_ms=200)
    assert one.get("/users").status_code == 200
    provider.silent.add("/.well-known/openid-configuration")
    later(46)

    answers = [each.get("/users").status_code for each in (one, other, one, other)]

    assert answers == [200] * 4
    assert provider.asked["/.well-known/openid-configuration"] == 2


def test_refresh_token__new_one_given_and_the_rest_fails__the_new_one_is_kept(
    site: Oidc, provider: Provider, later: Later, settings: Settings
) -> None:
    provider.claims_in_token = False
    ana = provider.add("s-1", "ana", "platform")
    browser = sign_in(provider, ana)
    before = tokens_open(ProviderSignIn.objects.get()).refresh
    provider.answers["/userinfo"] = (503, b"")
    later(46)
    assert browser.get("/users").status_code == 200
    assert before not in provider.refresh
    assert tokens_open(ProviderSignIn.objects.get()).refresh in provider.refresh

    provider.answers.clear()
    with_provider(settings, site)
    later(46)

    assert browser.get("/users").status_code == 200
    assert ProviderSignIn.objects.get().verified_at == ProviderSignIn.objects.get().checked_at


def test_requests__many_at_one_moment__ask_once(ana: Person, provider: Provider, later: Later) -> None:
    browser = sign_in(provider, ana)
    before = provider.asked["/token"]
    later(46)
    ready = threading.Barrier(6)

    def ask(_number: int) -> int:
        own = Client()
        own.cookies = browser.cookies
        ready.wait(timeout=30)
        try:
            code: int = own.get("/users").status_code
            return code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(ask, range(6))) == {200}

    assert provider.asked["/token"] - before == 1


def test_sign_in__of_another_browser__stands_by_itself(ana: Person, provider: Provider, later: Later) -> None:
    one, other = sign_in(provider, ana), sign_in(provider, ana)
    token = token_of("ana")
    one.post("/logout")
    later(46)

    assert (one.get("/users").status_code, other.get("/users").status_code) == (302, 200)
    assert by_token(token).status_code == 200


def test_personal_token__nobody_signed_in__may_nothing_but_see_itself(ana: Person, provider: Provider) -> None:
    browser = sign_in(provider, ana)
    token = token_of("ana", Scope(Role.VIEWER, "default"))
    assert by_token(token).status_code == 200

    browser.post("/logout")

    assert by_token(token).status_code == 404


def test_what_was_scheduled__by_somebody_who_is_not_there_any_more__has_no_rights(
    ana: Person, provider: Provider, later: Later
) -> None:
    sign_in(provider, ana)
    whose_it_is = id_of_user(USERS.objects.get(username="ana"))
    soon = principal_by_id(whose_it_is)
    later(901)

    late = principal_by_id(whose_it_is)

    assert soon is not None
    assert late is not None
    assert (soon.may(Role.ADMIN, None), late.scopes) == (True, ())


def test_sign_in__longer_than_a_session__ends_however_often_the_provider_vouches(
    ana: Person, provider: Provider, later: Later
) -> None:
    browser = sign_in(provider, ana)
    session = browser.session
    session["environment"] = "prod"  # what the console remembers makes the session itself last longer
    later(11 * 3600)
    session.save()
    assert browser.get("/users").status_code == 200

    later(3600 + 1)

    assert browser.get("/users").status_code == 302
    assert rights("ana") == set()


def test_provider__unset__roles_by_groups_count_for_nothing_and_those_given_by_hand_stay(
    ana: Person, provider: Provider, settings: Settings
) -> None:
    browser = sign_in(provider, ana)
    RoleGrant.objects.create(user=USERS.objects.get(username="ana"), role="operator", environment="prod")

    with_provider(settings, None)

    assert rights("ana") == {("operator", "prod")}
    assert browser.get("/users").status_code == 403
    assert Client().get("/login/oidc").status_code == 404
    assert Client().get("/login/oidc/callback?state=x&code=y").status_code == 404


def test_provider__another_one__does_not_vouch_for_people_of_the_old_one(
    ana: Person, provider: Provider, settings: Settings
) -> None:
    browser = sign_in(provider, ana)

    with_provider(settings, configured(provider, issuer="https://elsewhere.example"))

    assert rights("ana") == set()
    assert browser.get("/users").status_code == 302


def test_mapping__of_an_environment_that_comes_later__gives_the_role_then(
    site: Oidc, provider: Provider, settings: Settings, later: Later
) -> None:
    with_provider(settings, configured(provider, roles=group_roles("shop=viewer@stage, shop=viewer@prod")))
    browser = sign_in(provider, provider.add("s-1", "ana", "shop"))
    assert rights("ana") == {("viewer", "prod")}

    environment_create(key="stage", policy=EnvironmentPolicy(), actor=DANA)
    later(46)
    browser.get("/")

    assert rights("ana") == {("viewer", "prod"), ("viewer", "stage")}


def test_sign_out__ends_the_sign_in_here_and_leads_to_the_provider_to_end_it_there(
    ana: Person, provider: Provider
) -> None:
    browser = sign_in(provider, ana)
    assert provider.refresh

    answer = browser.post("/logout")

    text = answer.content.decode()
    assert answer.status_code == 200
    assert f"{provider.url}/end?client_id=parley&amp;post_logout_redirect_uri=" in text
    assert "no-store" in answer["Cache-Control"]
    assert (whose(browser), ProviderSignIn.objects.count()) == ("", 0)


@pytest.mark.parametrize("how", ["down", "has no such endpoint"])
def test_sign_out__provider_that_cannot_end_anything__ends_the_sign_in_here(
    ana: Person, provider: Provider, how: str, settings: Settings, site: Oidc
) -> None:
    browser = sign_in(provider, ana)
    with_provider(settings, site)
    if how == "down":
        provider.answers["/.well-known/openid-configuration"] = (503, b"")
    else:
        provider.metadata = {"end_session_endpoint": None}

    answer = browser.post("/logout")

    assert answer.status_code in (200, 302)
    assert provider.url not in answer.content.decode()
    assert (whose(browser), ProviderSignIn.objects.count()) == ("", 0)


def test_browsers__more_than_one_person_may_have__the_oldest_sign_in_ends(
    ana: Person, provider: Provider, later: Later
) -> None:
    first = sign_in(provider, ana)
    for _ in range(20):
        later(1)
        sign_in(provider, ana)

    assert ProviderSignIn.objects.count() == 20
    assert first.get("/users").status_code == 302


def test_sign_in__provider_down__says_so_on_the_page_and_leaves_the_way_by_password(
    site: Oidc, provider: Provider, settings: Settings
) -> None:
    browser = Client()
    url = provider.signed_in(begun(browser), provider.add("s-1", "ana"))
    provider.answers["/token"] = (503, b"")

    back = came_back(browser, url)
    with_provider(settings, site)  # a process that knows nothing of the provider yet
    provider.answers["/.well-known/openid-configuration"] = (503, b"")
    begin = Client().get("/login/oidc")

    for answer in (back, begin):
        assert answer.status_code == 503
        assert "cannot be asked now. Try again in a minute" in answer.content.decode()
        assert 'name="password"' in answer.content.decode()
