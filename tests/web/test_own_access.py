"""Browsers and tokens on one page: seen and ended by whose they are and by who administers."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts import signed_in
from controlplane.accounts.models import RoleGrant, SignedInBrowser
from controlplane.accounts.principal import Role, Scope
from controlplane.accounts.selectors import token_principal, user_principal
from controlplane.accounts.services import api_token_create
from controlplane.http import browser_seen
from controlplane.journal.models import AuditEvent
from tests.web.conftest import HOSTILE, USERS, SignIn, assert_harmless, page

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19 Safari/605"
)


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings, environments: None) -> None:
    # Slow hashes are Django's to test; here they would only make a minute pass.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    USERS.objects.create_user("eve", password=PASSWORD)


def browser(agent: str = FIREFOX, address: str = "192.0.2.7", name: str = "eve") -> Client:
    """A browser in which somebody signed in by the form."""
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    answer = client.post("/login", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def id_of(software: str) -> str:
    return str(SignedInBrowser.objects.get(software=software).pk)


def test_browsers__two_of_one_person__are_listed_in_words_and_which_is_this(sign_in: SignIn) -> None:
    here, other = browser(), browser(SAFARI, "198.51.100.9")

    shown = page(here, "/account/access")

    for words in ("Firefox on Linux", "this one", "Safari on macOS", "192.0.2.7", "198.51.100.9"):
        assert words in shown
    for each in (here, other):
        assert each.cookies["sessionid"].value not in shown
    assert shown.index("Firefox on Linux") < shown.index("this one") < shown.index("Safari on macOS") or (
        shown.index("Safari on macOS") < shown.index("Firefox on Linux") < shown.index("this one")
    )
    assert "Firefox" not in page(sign_in(Role.VIEWER, "default"), "/account/access")


def test_browser__ended_from_another__is_nobodys_with_its_next_request() -> None:
    here, other = browser(), browser(SAFARI)
    assert other.get("/account").status_code == 200

    answer = here.post("/account/access", {"action": "end-browser", "id": id_of("Safari on macOS")})

    assert answer.status_code == 302
    assert other.get("/account")["Location"].startswith("/login")
    assert other.get("/api/v1/environments").status_code == 401
    assert here.get("/account").status_code == 200
    event = AuditEvent.objects.get(verb="session.ended")
    assert (event.actor, event.subject, event.detail["browser"]) == ("eve", "eve", "Safari on macOS")


def test_browsers__all_others_ended__this_one_stays() -> None:
    here, others = browser(), [browser(SAFARI), browser("curl/8.5")]

    answer = here.post("/account/access", {"action": "end-browsers"})

    assert answer.status_code == 302
    assert "2 browsers are signed out" in page(here, "/account/access")
    assert [each.get("/account").status_code for each in (here, *others)] == [200, 302, 302]


def test_browsers__all_ended__so_is_one_that_nobody_noted(sign_in: SignIn) -> None:
    quiet = browser()
    SignedInBrowser.objects.all().delete()

    path = f"/users/{USERS.objects.get(username='eve').pk}/access"
    sign_in(None, "").post(path, {"action": "end-browsers", "reason": "lost laptop"})

    assert quiet.get("/account").status_code == 302
    assert AuditEvent.objects.get(verb="session.ended").subject == "eve"


def test_browsers__of_another_person__an_administrator_sees_and_ends_them_with_a_reason(sign_in: SignIn) -> None:
    root, hers = sign_in(None, ""), browser()
    path = f"/users/{USERS.objects.get(username='eve').pk}/access"

    listed = page(root, path)
    unsaid = root.post(path, {"action": "end-browsers"})
    still = hers.get("/account").status_code
    ended = root.post(path, {"action": "end-browser", "id": id_of("Firefox on Linux"), "reason": "lost laptop"})

    assert "Firefox on Linux" in listed
    assert "this one" not in listed
    assert (unsaid.status_code, still, ended.status_code) == (422, 200, 302)
    assert hers.get("/account").status_code == 302
    event = AuditEvent.objects.get(verb="session.ended")
    assert (event.actor, event.subject, event.detail["reason"]) == ("admin", "eve", "lost laptop")
    assert root.get("/account").status_code == 200


def test_browser__of_somebody_else__cannot_be_ended_on_ones_own_page(sign_in: SignIn) -> None:
    hers, mallory = browser(), sign_in(Role.VIEWER, "default")

    answer = mallory.post("/account/access", {"action": "end-browser", "id": id_of("Firefox on Linux")})

    assert answer.status_code == 404
    assert hers.get("/account").status_code == 200


def test_access_of_another__for_who_administers_everything_alone_and_superusers_for_superusers(sign_in: SignIn) -> None:
    root = sign_in(None, "")
    page(root, "/account")
    path = f"/users/{USERS.objects.get(username='admin').pk}/access"
    RoleGrant.objects.create(user=USERS.objects.get(username="eve"), role="admin", environment="")

    some = sign_in(Role.ADMIN, "default").get(path)
    ended = browser().post(path, {"action": "end-browsers", "reason": "mine"})

    assert (some.status_code, ended.status_code) == (403, 403)
    assert "only superusers" in ended.content.decode()
    assert root.get("/account").status_code == 200


def test_browsers__signed_out_or_of_an_older_password__are_not_listed() -> None:
    here = browser()
    browser(SAFARI)
    gone = browser("curl/8.5")
    gone.post("/logout")
    form = {"old": PASSWORD, "new": "another staple 77", "again": "another staple 77"}

    assert here.post("/account", form).status_code == 302
    shown = page(here, "/account/access")

    assert "Firefox on Linux" in shown
    assert "this one" in shown
    assert "Safari" not in shown
    assert "curl" not in shown


def test_browser__seen_again__is_written_down_once_in_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    here = browser()
    long_ago = timezone.now() - timedelta(hours=1)
    SignedInBrowser.objects.update(seen_at=long_ago)
    expires = Session.objects.get().expire_date

    here.get("/account")
    unchanged = SignedInBrowser.objects.get().seen_at
    monkeypatch.setattr(signed_in, "_seen", signed_in._Seen())
    here.get("/account")

    assert unchanged == long_ago
    assert SignedInBrowser.objects.get().seen_at > long_ago
    # Looking on does not make a session last longer.
    assert Session.objects.get().expire_date == expires


def test_page__while_the_database_takes_no_write__is_there_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(**_facts: object) -> None:
        raise OperationalError("database is locked")

    here = browser()
    monkeypatch.setattr(signed_in, "_seen", signed_in._Seen())
    monkeypatch.setattr(browser_seen, "browser_seen", locked)

    assert here.get("/account").status_code == 200


def test_browsers__whose_sessions_ended_long_ago__are_forgotten() -> None:
    old = browser()
    Session.objects.all().delete()
    SignedInBrowser.objects.update(seen_at=timezone.now() - timedelta(days=1))

    browser(SAFARI)

    assert old.get("/account").status_code == 302
    assert [each.software for each in SignedInBrowser.objects.all()] == ["Safari on macOS"]


def test_tokens__ones_own__are_listed_and_ended_and_those_of_others_are_not(sign_in: SignIn) -> None:
    eve, here = USERS.objects.get(username="eve"), browser()
    owner = user_principal(eve)
    assert owner is not None
    token, text = api_token_create(name=HOSTILE[:100], scopes=(Scope(Role.VIEWER, "prod"),), actor=owner)
    mallory = sign_in(None, "")
    end = {"action": "end-token", "id": str(token.pk), "reason": "leaked"}

    shown = page(here, "/account/access")
    foreign = mallory.post("/account/access", end)
    unsaid = here.post("/account/access", {**end, "reason": ""})
    still = token_principal(text)
    ended = here.post("/account/access", end)

    assert_harmless(shown)
    assert token.prefix in shown
    assert "viewer in prod" in shown
    assert (foreign.status_code, unsaid.status_code, ended.status_code) == (404, 422, 302)
    assert still is not None
    assert token_principal(text) is None
    assert token.prefix in page(mallory, f"/users/{eve.pk}/access")


@pytest.mark.parametrize(("form", "status"), [({"action": "burn"}, 422), ({"action": "end-browser", "id": "x"}, 404)])
def test_form__with_a_mistake__ends_nothing(form: dict[str, str], status: int) -> None:
    here = browser()

    assert here.post("/account/access", form).status_code == status
    assert here.get("/account").status_code == 200


def test_token_of_the_api__is_no_browser() -> None:
    owner = user_principal(USERS.objects.get(username="eve"))
    assert owner is not None
    text = api_token_create(name="ci", scopes=(), actor=owner)[1]

    Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/environments")

    assert not SignedInBrowser.objects.exists()
