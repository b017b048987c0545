"""Tokens and users: made, told once, ended; by whom; and what the audit log keeps of it."""

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.principal import Role
from controlplane.accounts.selectors import client_token_is_valid, token_principal
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.catalog.models import Environment
from controlplane.journal.models import AuditEvent
from tests.web.conftest import DANA, HOSTILE, USERS, SignIn, assert_harmless, page

pytestmark = pytest.mark.django_db
API_FORM = {"action": "make-api", "name": "ci", "role-1": "editor", "environment-1": "default", "days": "90"}
CLIENT_FORM = {"action": "make-client", "subject": "pay", "environment": "default", "days": "never"}


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings) -> None:
    # Slow hashes are Django's to test; here they would only make a minute pass.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def two(environments: None) -> None:
    """`default` and `prod` are there, also where nobody signs in by `sign_in`."""


def secret_in(text: str) -> str:
    found = re.search(r'data-copy="([^"]+)"', text)
    assert found is not None, text
    return found[1]


def eve() -> Any:
    return USERS.objects.create_user("eve", password="correct horse battery")


def last_event(verb: str) -> AuditEvent:
    return AuditEvent.objects.filter(verb=verb).latest("pk")


def test_token__made__is_told_once_and_is_good_for_what_it_says(sign_in: SignIn) -> None:
    browser = sign_in(None, "")

    answer = browser.post("/tokens", {**API_FORM, "role-2": "viewer", "environment-2": "*"})

    text = secret_in(answer.content.decode())
    principal = token_principal(text)
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    assert principal is not None
    assert [(each.role, each.environment) for each in principal.scopes] == [
        (Role.EDITOR, "default"),
        (Role.VIEWER, None),
    ]
    assert text not in page(browser, "/tokens")
    assert last_event("token.created").actor == "admin"


def test_token__made_on_the_page__says_whose_it_is_and_ends_with_the_account(sign_in: SignIn) -> None:
    browser = sign_in(Role.ADMIN, "default")
    user = USERS.objects.get(username="admin-default")
    own = secret_in(browser.post("/tokens", {**API_FORM, "kind": "personal"}).content.decode())
    service = secret_in(browser.post("/tokens", {**API_FORM, "kind": "service"}).content.decode())

    shown = page(browser, "/tokens")
    root = sign_in(None, "")
    off = root.post(f"/users/{user.pk}", {"action": "disable", "reason": "left"})

    assert "of admin-default" in shown
    assert "of a service" in shown
    assert off.status_code == 302
    assert (token_principal(own), token_principal(service) is not None) == (None, True)
    assert AuditEvent.objects.filter(verb="token.revoked", actor="admin").count() == 1
    assert "yours or a service" in root.post("/tokens", {**API_FORM, "kind": "installation"}).content.decode()


def test_client_token__made__ads_would_take_it(sign_in: SignIn) -> None:
    answer = sign_in(None, "").post("/tokens?kind=client", CLIENT_FORM)

    assert client_token_is_valid(secret_in(answer.content.decode()))
    assert ClientToken.objects.get().expires_at is None


def test_client_token__made__says_what_its_bearer_needs_beside_it(sign_in: SignIn) -> None:
    environment = Environment.objects.get(key="default")
    environment.node_ids = ["{name}-*"]
    environment.save()

    shown = sign_in(None, "").post("/tokens?kind=client", CLIENT_FORM).content.decode()

    assert "GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true" in shown
    assert "whose id is like &#x27;pay-*&#x27;" in shown


def test_client_token__that_no_selector_leads_to_its_environment__is_refused_with_why(sign_in: SignIn) -> None:
    answer = sign_in(None, "").post("/tokens?kind=client", {**CLIENT_FORM, "environment": "prod"})

    assert answer.status_code == 422
    assert "none of its selectors takes this identity" in answer.content.decode()
    assert not ClientToken.objects.exists()


@pytest.mark.parametrize("kind", ["api", "client"])
def test_token__ended__is_refused_from_then_on_and_the_log_says_why(kind: str, sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    api, text = api_token_create(name="ci", scopes=(), actor=DANA)
    client, secret = client_token_create(subject="pay", environment="default", actor=DANA)
    row = api if kind == "api" else client

    answer = browser.post(f"/tokens?kind={kind}", {"action": f"end-{kind}", "id": str(row.pk), "reason": "leaked"})

    assert answer.status_code == 302
    assert (token_principal(text) is None, client_token_is_valid(secret)) == (kind == "api", kind == "api")
    assert last_event("token.revoked" if kind == "api" else "client-token.revoked").detail["reason"] == "leaked"


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({**API_FORM, "name": "two\nlines"}, "one line"),
        ({**API_FORM, "role-1": ""}, "at least one role"),
        ({**API_FORM, "environment-1": "absent"}, "There is no environment"),
        ({**API_FORM, "until": "2020-01-01"}, "in the past"),
        ({**API_FORM, "until": "tomorrow"}, "is no day"),
        ({**API_FORM, "days": "7000"}, "how long"),
        ({**CLIENT_FORM, "subject": "spiffe://corp/pay"}, "no SPIFFE ID"),
        ({"action": "burn"}, "no such action"),
        ({"action": "end-api", "id": "1"}, "Say why"),
        ({"action": "end-api", "id": "x", "reason": "y"}, "does not exist"),
    ],
)
def test_token__form_with_a_mistake__says_which_and_makes_nothing(
    form: dict[str, str], says: str, sign_in: SignIn
) -> None:
    answer = sign_in(None, "").post("/tokens", form)

    assert answer.status_code in (404, 422)
    assert says in answer.content.decode()
    assert not ApiToken.objects.exists()
    assert not ClientToken.objects.exists()


def test_tokens__administrator_of_one_environment__sees_ends_and_makes_only_what_is_of_it(sign_in: SignIn) -> None:
    foreign, text = api_token_create(name="of-all", scopes=DANA.scopes, actor=DANA)
    client_token_create(subject="of-prod", environment="prod", actor=DANA)
    browser = sign_in(Role.ADMIN, "default")

    listed = page(browser, "/tokens") + page(browser, "/tokens?kind=client")
    made = browser.post("/tokens", {**API_FORM, "environment-1": "prod"})
    anywhere = browser.post("/tokens?kind=client", {**CLIENT_FORM, "environment": ""})
    ended = browser.post("/tokens", {"action": "end-api", "id": str(foreign.pk), "reason": "mine now"})

    assert "of-all" not in listed
    assert "of-prod" not in listed
    assert (made.status_code, anywhere.status_code, ended.status_code) == (403, 403, 404)
    assert token_principal(text) is not None


def test_tokens__who_administers_nothing__is_refused_and_is_not_led_there(sign_in: SignIn) -> None:
    browser = sign_in(Role.OPERATOR, "default")

    assert "administers none" in page(browser, "/tokens", 403)
    assert 'href="/tokens"' not in page(browser, "/")
    assert 'href="/users"' not in page(browser, "/")


def test_tokens__of_somebody_who_administers_no_more__are_shown_and_ended_and_nothing_else(sign_in: SignIn) -> None:
    browser = sign_in(Role.ADMIN, "default")
    own = secret_in(browser.post("/tokens", {**API_FORM, "kind": "personal"}).content.decode())
    browser.post("/tokens", {**API_FORM, "name": "of-a-service", "kind": "service"})
    browser.post("/tokens?kind=client", CLIENT_FORM)
    RoleGrant.objects.all().delete()
    token = ApiToken.objects.get(kind="personal")

    shown, planes = page(browser, "/tokens"), page(browser, "/tokens?kind=client")
    account = page(browser, "/account")
    made = browser.post("/tokens", {**API_FORM, "name": "more"})
    ended = browser.post("/tokens", {"action": "end-api", "id": str(token.pk), "reason": "it leaked"})

    for each in (shown, planes):
        assert token.prefix in each
        assert "of-a-service" not in each
        assert ">pay<" not in each
        assert "New token" not in each
        assert "Data planes" not in each
    assert 'href="/account/access"' in account
    assert (made.status_code, ended.status_code) == (403, 302)
    assert token_principal(own) is None


def test_tokens__hostile_names_and_filters__are_shown_as_text(sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    api_token_create(name=HOSTILE, scopes=(), actor=DANA)

    assert_harmless(page(browser, "/tokens"))
    assert "ci" not in page(browser, "/tokens?text=nothing+is+called+so").partition("<main")[2].partition("<form")[0]
    assert "No token fits" in page(browser, "/tokens?state=ended")


def test_user__added_and_given_a_role__signs_in_and_sees_that_environment(sign_in: SignIn) -> None:
    browser = sign_in(None, "")

    added = browser.post("/users", {"username": "eve", "reason": "joined payments"})
    user = USERS.objects.get(username="eve")
    form = {"action": "give", "role": "viewer", "environment": "prod", "reason": "reads prod"}
    given = browser.post(f"/users/{user.pk}", form)
    other = Client()
    signed_in = other.login(username="eve", password=secret_in(added.content.decode()))

    assert (added.status_code, added["Cache-Control"], given.status_code, signed_in) == (201, "no-store", 302, True)
    assert other.get("/e/prod/resources").status_code == 200
    assert other.get("/e/default/resources").status_code == 404
    event = last_event("role.granted")
    assert (event.actor, event.subject, event.environment) == ("admin", "eve", "prod")
    assert event.detail == {"reason": "reads prod", "role": "viewer"}


def test_user__turned_off__is_out_with_the_next_request_and_may_come_back(sign_in: SignIn) -> None:
    user, browser, other = eve(), sign_in(None, ""), Client()
    other.force_login(user)
    assert other.get("/account").status_code == 200

    browser.post(f"/users/{user.pk}", {"action": "disable", "reason": "left"})
    outside = other.get("/account")
    browser.post(f"/users/{user.pk}", {"action": "enable", "reason": "came back"})

    assert outside["Location"].startswith("/login")
    assert USERS.objects.get(pk=user.pk).is_active
    assert (last_event("user.disabled").detail["reason"], last_event("user.enabled").detail["reason"]) == (
        "left",
        "came back",
    )


def test_user__role_taken__ends_at_once(sign_in: SignIn) -> None:
    user = eve()
    grant = RoleGrant.objects.create(user=user, role="viewer", environment="prod")
    other = Client()
    other.force_login(user)

    sign_in(None, "").post(f"/users/{user.pk}", {"action": "take", "grant": str(grant.pk), "reason": "moved on"})

    assert other.get("/e/prod/resources").status_code == 404
    assert last_event("role.taken").detail == {"reason": "moved on", "role": "viewer"}


def test_user__password_renewed__the_old_one_and_its_sessions_end(sign_in: SignIn) -> None:
    user, other = eve(), Client()
    other.login(username="eve", password="correct horse battery")

    answer = sign_in(None, "").post(f"/users/{user.pk}", {"action": "password", "reason": "lost it"})

    user.refresh_from_db()
    assert other.get("/account").status_code == 302
    assert user.check_password(secret_in(answer.content.decode()))
    assert last_event("user.password-renewed").detail == {"reason": "lost it"}


@pytest.mark.parametrize("action", ["disable", "password", "give", "take", "rename", "end-superuser"])
def test_superuser__changed_by_who_is_none__is_refused(action: str, sign_in: SignIn) -> None:
    root = USERS.objects.create_superuser("root", password="correct horse battery")
    admin = eve()
    RoleGrant.objects.create(user=admin, role="admin", environment="")
    browser = Client()
    browser.force_login(admin)
    form = {"action": action, "role": "admin", "environment": "*", "grant": "1", "reason": "mine now"}

    answer = browser.post(f"/users/{root.pk}", form)

    root.refresh_from_db()
    assert answer.status_code == 403
    assert "only superusers" in answer.content.decode()
    assert root.is_active
    assert root.check_password("correct horse battery")


@pytest.mark.parametrize(
    ("action", "verb"), [("make-superuser", "superuser.made"), ("end-superuser", "superuser.ended")]
)
def test_superuser__made_and_ended_by_another__may_everything_or_no_more(
    action: str, verb: str, sign_in: SignIn
) -> None:
    user, other = eve(), Client()
    USERS.objects.filter(pk=user.pk).update(is_superuser=action == "end-superuser")
    other.force_login(user)

    answer = sign_in(None, "").post(f"/users/{user.pk}", {"action": action, "reason": "on call"})

    assert answer.status_code == 302
    assert other.get("/users").status_code == (200 if action == "make-superuser" else 403)
    assert (last_event(verb).subject, last_event(verb).detail) == ("eve", {"reason": "on call"})


def test_superuser__ends_that_of_themselves_or_is_made_by_an_administrator__is_refused(sign_in: SignIn) -> None:
    root, user = sign_in(None, ""), eve()
    own = USERS.objects.get(username="admin")
    RoleGrant.objects.create(user=user, role="admin", environment="")
    browser = Client()
    browser.force_login(user)
    third = USERS.objects.create_user("third")

    ended = root.post(f"/users/{own.pk}", {"action": "end-superuser", "reason": "tired"})
    made = browser.post(f"/users/{third.pk}", {"action": "make-superuser", "reason": "mine"})

    assert (ended.status_code, made.status_code) == (409, 403)
    assert USERS.objects.get(pk=own.pk).is_superuser
    assert not USERS.objects.get(pk=third.pk).is_superuser
    assert "make-superuser" not in page(browser, f"/users/{third.pk}")


def test_user__renamed__keeps_id_and_roles_and_the_log_says_both_names(sign_in: SignIn) -> None:
    user, browser = eve(), sign_in(None, "")
    USERS.objects.create_user("taken")

    taken = browser.post(f"/users/{user.pk}", {"action": "rename", "username": "taken", "reason": "married"})
    wrong = browser.post(f"/users/{user.pk}", {"action": "rename", "username": "two words", "reason": "married"})
    done = browser.post(f"/users/{user.pk}", {"action": "rename", "username": "eve.new", "reason": "married"})

    assert (taken.status_code, wrong.status_code, done.status_code) == (409, 422, 302)
    assert 'value="two words"' in wrong.content.decode()
    assert USERS.objects.get(pk=user.pk).username == "eve.new"
    assert last_event("user.renamed").detail == {"reason": "married", "before": "eve"}


def test_administrator__ends_their_own_rights__is_refused(sign_in: SignIn) -> None:
    admin = eve()
    grant = RoleGrant.objects.create(user=admin, role="admin", environment="")
    browser = Client()
    browser.force_login(admin)

    off = browser.post(f"/users/{admin.pk}", {"action": "disable", "reason": "tired"})
    taken = browser.post(f"/users/{admin.pk}", {"action": "take", "grant": str(grant.pk), "reason": "tired"})

    assert (off.status_code, taken.status_code) == (409, 409)
    assert RoleGrant.objects.filter(pk=grant.pk).exists()


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"username": "eve", "reason": "again"}, 409),
        ({"username": "two words", "reason": "x"}, 422),
        ({"username": "", "reason": "x"}, 422),
        ({"username": "x" * 151, "reason": "x"}, 422),
        ({"username": "mallory"}, 422),
    ],
)
def test_user__form_with_a_mistake__adds_nobody(form: dict[str, str], status: int, sign_in: SignIn) -> None:
    eve()
    browser, before = sign_in(None, ""), USERS.objects.count()

    assert browser.post("/users", form).status_code == status
    assert USERS.objects.count() == before


@pytest.mark.parametrize("path", ["/users", "/users/1"])
def test_users__administrator_of_one_environment__is_refused(path: str, sign_in: SignIn) -> None:
    browser = sign_in(Role.ADMIN, "default")

    assert browser.get(path).status_code == 403
    assert browser.post(path, {"username": "x", "reason": "y"}).status_code == 403


def test_user__who_is_not_there__is_not_found(sign_in: SignIn) -> None:
    assert "There is no user 987654." in page(sign_in(None, ""), "/users/987654", 404)
    assert page(sign_in(None, ""), f"/users/{2**64}", 404)


def test_account__own_password__changes_and_only_this_session_stays() -> None:
    user, here, elsewhere = eve(), Client(), Client()
    for browser in (here, elsewhere):
        browser.login(username="eve", password="correct horse battery")
    form = {"old": "correct horse battery", "new": "another staple 77", "again": "another staple 77"}

    answer = here.post("/account", form)

    user.refresh_from_db()
    assert answer.status_code == 302
    assert user.check_password("another staple 77")
    assert (here.get("/account").status_code, elsewhere.get("/account").status_code) == (200, 302)
    assert "staple" not in str(last_event("user.password-changed").detail)


@pytest.mark.parametrize(
    ("old", "new", "again", "says"),
    [
        ("wrong", "another staple 77", "another staple 77", "old password is another"),
        ("correct horse battery", "short", "short", "too short"),
        ("correct horse battery", "another staple 77", "another staple 78", "differ"),
    ],
)
def test_account__password_with_a_mistake__says_which(old: str, new: str, again: str, says: str) -> None:
    user, browser = eve(), Client()
    browser.force_login(user)

    answer = browser.post("/account", {"old": old, "new": new, "again": again})

    user.refresh_from_db()
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert user.check_password("correct horse battery")
