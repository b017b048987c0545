"""Accounts of Parley's own beside an identity provider: break-glass always works, and nobody of the provider has a
password.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from adsserver.ports import Directory
from adsserver.store.fleet import Fleet
from controlplane.accounts.models import ApiToken, Identity, ProviderSignIn, RoleGrant
from controlplane.accounts.principal import Role, Scope
from controlplane.accounts.selectors import user_principal
from controlplane.accounts.services import api_token_create
from controlplane.catalog.sealing import KeyRing, key_ring
from controlplane.config.oidc import GroupRole, LocalSignIn, Oidc
from controlplane.journal.models import AuditEvent
from controlplane.oidc.sealing import tokens_open
from tests.services.oidc.conftest import Later, begun, came_back, configured, sign_in, with_provider
from tests.services.oidc.test_signing_in import whose
from tests.support.ads import MemoryContents
from tests.support.keys import UseKeys
from tests.support.openid_provider import Provider
from tests.web.conftest import HOSTILE, USERS, assert_harmless, page

PASSWORD = "correct horse battery"


def by_password(name: str, browser: Client | None = None) -> Client:
    browser = browser or Client()
    browser.post("/login", {"username": name, "password": PASSWORD})
    return browser


@pytest.fixture
def local(site: Oidc) -> None:
    """The first administrator, and somebody without rights of one."""
    USERS.objects.create_superuser("admin", password=PASSWORD)
    eve = USERS.objects.create_user("eve", password=PASSWORD)
    RoleGrant.objects.create(user=eve, role="admin", environment="")


@pytest.mark.parametrize("allowed", LocalSignIn)
@pytest.mark.parametrize("broken", ["nothing", "configuration", "silent"])
def test_break_glass__whatever_the_provider_does__signs_in_by_password_and_works(
    local: None, provider: Provider, settings: Settings, allowed: LocalSignIn, broken: str
) -> None:
    with_provider(settings, configured(provider, local_sign_in=allowed), oidc_timeout_ms=200)
    if broken == "configuration":
        provider.answers["/.well-known/openid-configuration"] = (500, b"")
    elif broken == "silent":
        provider.silent.add("/.well-known/openid-configuration")

    admin = by_password("admin")

    assert whose(admin) == "admin"
    assert admin.get("/users").status_code == 200
    assert provider.url not in admin.post("/logout").content.decode()
    assert sum(provider.asked.values()) == 0


def test_break_glass__guessed_at__the_limits_of_attempts_hold(local: None, provider: Provider) -> None:
    wrong = [Client().post("/login", {"username": "admin", "password": "wrong"}).status_code for _ in range(6)]

    assert wrong == [200] * 5 + [429]


def test_local_sign_in__shut_off__leaves_superusers_of_parleys_own_alone(
    local: None, provider: Provider, settings: Settings
) -> None:
    before = by_password("eve")
    assert before.get("/users").status_code == 200

    with_provider(settings, configured(provider, local_sign_in=LocalSignIn.BREAK_GLASS))

    answer = Client().post("/login", {"username": "eve", "password": PASSWORD})
    assert answer.status_code == 200
    assert "Please enter a correct username and password" in answer.content.decode()
    assert before.get("/users").status_code == 302
    assert "people sign in by the identity provider now" in page(before, "/login")
    assert whose(by_password("admin")) == "admin"
    assert AuditEvent.objects.filter(verb="login.failed", subject="eve").count() == 1


def test_person_of_the_provider__has_no_way_by_a_password(local: None, provider: Provider, settings: Settings) -> None:
    ana = sign_in(provider, provider.add("s-1", "ana", "platform"))
    user = USERS.objects.get(username="ana")
    admin = by_password("admin")

    renewed = admin.post(f"/users/{user.pk}", {"action": "password", "reason": "asked for"})
    changed = ana.post("/account", {"old": "", "new": PASSWORD, "again": PASSWORD})
    # Somebody with a shell sets what they like; and somebody may make her a superuser.
    user.set_password(PASSWORD)
    user.is_superuser = True
    user.save()

    assert (renewed.status_code, changed.status_code) == (409, 409)
    assert "signs in by the identity provider and has no password here" in renewed.content.decode()
    assert whose(by_password("ana")) == ""
    with_provider(settings, None)
    assert whose(by_password("ana")) == "ana"


def test_role_by_a_group__cannot_be_taken_here_and_one_given_by_hand_can(local: None, provider: Provider) -> None:
    sign_in(provider, provider.add("s-1", "ana", "shop"))
    user = USERS.objects.get(username="ana")
    admin = by_password("admin")
    given = {"action": "give", "role": "editor", "environment": "default", "reason": "for now"}
    assert admin.post(f"/users/{user.pk}", given).status_code == 302
    by_group = RoleGrant.objects.get(user=user, role="editor", provider_group="shop")
    by_hand = RoleGrant.objects.get(user=user, role="editor", provider_group="")

    answers = [
        admin.post(f"/users/{user.pk}", {"action": "take", "grant": str(each.pk), "reason": "no more"})
        for each in (by_group, by_hand)
    ]

    assert [each.status_code for each in answers] == [409, 302]
    assert "by the group 'shop' at the identity provider" in answers[0].content.decode().replace("&#x27;", "'")
    assert list(RoleGrant.objects.filter(user=user, role="editor")) == [by_group]


def test_pages__say_where_an_account_comes_from(local: None, provider: Provider) -> None:
    ana = sign_in(provider, provider.add("s-1", "ana", "platform"))
    user, admin = USERS.objects.get(username="ana"), by_password("admin")

    own, hers, everybody = page(ana, "/account"), page(admin, f"/users/{user.pk}"), page(admin, "/users")

    for text in (own, hers):
        assert "Comes from" in text
        assert provider.url in text
        assert "by the group platform at the identity provider" in text
        assert "New password" not in text
        assert "Change your password" not in text
    assert "by the identity provider" in everybody
    assert "Parley&#x27;s own accounts" in page(admin, "/account") or "Parley's own accounts" in page(admin, "/account")


def test_pages__words_of_the_provider__harm_nobody(local: None, provider: Provider, settings: Settings) -> None:
    row = GroupRole(HOSTILE, Role.ADMIN, "")
    with_provider(settings, configured(provider, roles=(row,)))
    ana = sign_in(provider, provider.add(HOSTILE, HOSTILE, HOSTILE))
    user = Identity.objects.get().user
    assert user.get_username().isascii()
    admin = by_password("admin")

    for text in (page(ana, "/account"), page(admin, f"/users/{user.pk}"), page(admin, "/users"), page(admin, "/audit")):
        assert_harmless(text)


def test_account_turned_off__ends_session_and_tokens(local: None, provider: Provider) -> None:
    ana = sign_in(provider, provider.add("s-1", "ana", "platform"))
    user, admin = USERS.objects.get(username="ana"), by_password("admin")
    ana.post(
        "/tokens", {"action": "make-api", "name": "t", "role-1": "viewer", "environment-1": "default", "days": "90"}
    )
    assert ApiToken.objects.filter(owner=user, revoked_at=None).count() == 1

    admin.post(f"/users/{user.pk}", {"action": "disable", "reason": "left"})

    assert ana.get("/users").status_code == 302
    assert not ApiToken.objects.filter(owner=user, revoked_at=None).exists()


def test_first_sign_ins__one_person_in_many_browsers_at_one_moment__have_one_account(
    site: Oidc, provider: Provider
) -> None:
    ana, ready = provider.add("s-1", "ana", "shop"), threading.Barrier(4)
    browsers = [Client() for _ in range(4)]
    urls = [provider.signed_in(begun(browser), ana) for browser in browsers]

    def come_back(number: int) -> int:
        ready.wait(timeout=30)
        try:
            code: int = came_back(browsers[number], urls[number]).status_code
            return code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(come_back, range(4))) == {302}

    assert Identity.objects.get().user.get_username() == "ana"
    assert USERS.objects.count() == 1
    assert ProviderSignIn.objects.count() == 4


def test_first_sign_ins__two_people_of_one_name__have_two_accounts(site: Oidc, provider: Provider) -> None:
    one = sign_in(provider, provider.add("s-1", "ana"))
    two = sign_in(provider, provider.add("s-2", "Ana"))

    assert (whose(one), whose(two)) == ("ana", "Ana-2")


def test_keys__rotated__sign_ins_are_sealed_anew_and_go_on(
    local: None, provider: Provider, use_keys: UseKeys, later: Later, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = b"o" * 32, b"n" * 32
    use_keys(old)
    ana = sign_in(provider, provider.add("s-1", "ana", "platform"))
    tokens = tokens_open(ProviderSignIn.objects.get())
    use_keys(new, old)

    call_command("rotate_keys")

    assert "1 sign-ins" in capsys.readouterr().out
    assert key_ring().is_current(bytes(ProviderSignIn.objects.get().sealed))
    use_keys(new)
    assert tokens_open(ProviderSignIn.objects.get()) == tokens
    later(46)
    assert ana.get("/users").status_code == 200


def test_keys__lost__the_sign_in_ends(local: None, provider: Provider, later: Later) -> None:
    ana = sign_in(provider, provider.add("s-1", "ana", "platform"))
    foreign = KeyRing((b"x" * 32,)).seal(b"[]", b"any")
    ProviderSignIn.objects.update(sealed=foreign)
    later(46)

    assert ana.get("/users").status_code == 302
    assert not ProviderSignIn.objects.exists()


@pytest.mark.parametrize("asked", [True, False])
def test_ads__token_of_a_person_of_the_provider__speaks_for_nobody_there(
    local: None, provider: Provider, settings: Settings, asked: bool
) -> None:
    sign_in(provider, provider.add("s-1", "ana", "platform"))
    ana, eve = (user_principal(USERS.objects.get(username=name)) for name in ("ana", "eve"))
    assert ana is not None
    assert eve is not None
    tokens = [api_token_create(name="t", scopes=[Scope(Role.VIEWER, None)], actor=each)[1] for each in (ana, eve)]
    if not asked:
        with_provider(settings, None)  # processes of ADS need not be told of the provider

    fleet = Fleet(MemoryContents())
    fleet.observe(Directory())

    assert [fleet.reader(token) is not None for token in tokens] == [False, True]


def test_sign_in_page__offers_the_provider_first_and_keeps_the_way_back(local: None, provider: Provider) -> None:
    text = page(Client(), "/login?next=/users%3Ftext%3Da")

    assert 'href="/login/oidc?next=%2Fusers%3Ftext%3Da"' in text
    assert "Sign in with Staff ID" in text
    browser: Any = Client()
    url = provider.signed_in(begun(browser, "/users?text=a"), provider.add("s-1", "ana", "platform"))
    assert came_back(browser, url)["Location"] == "/users?text=a"


def test_sign_in_page__without_a_provider__is_as_it_was(local: None, settings: Settings) -> None:
    with_provider(settings, None)

    text = page(Client(), "/login")

    assert "oidc" not in text
    assert '<details class="disclosure' not in text
