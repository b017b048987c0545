"""Invitations by link: made, mailed, opened, accepted once, sent anew and withdrawn; and what nobody gets by one."""

import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.models import LoginAttempt, RoleGrant
from controlplane.accounts.principal import SYSTEM, Role
from controlplane.accounts.token_text import token_digest
from controlplane.catalog.services import environment_create, environment_delete
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.invitations.models import Invitation
from controlplane.journal.models import AuditEvent
from tests.web.conftest import HOSTILE, USERS, SignIn, assert_harmless, page

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
FORM = {
    "action": "make",
    "username": "eve",
    "role-1": "viewer",
    "environment-1": "prod",
    "days": "7",
    "reason": "joins",
}
WORDS = {"new": PASSWORD, "again": PASSWORD}
CLOSED = "This link opens nothing"


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings) -> None:
    # Slow hashes are Django's to test; here they would only make a minute pass.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def root(sign_in: SignIn) -> Client:
    return sign_in(None, "")


Link = Callable[..., str]


@pytest.fixture
def invite(root: Client) -> Link:
    """Makes an invitation on the page, and returns the path of its link."""

    def made(**fields: str) -> str:
        answer = root.post("/users/invitations", {**FORM, **fields})
        assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store"), answer.content.decode()
        return link_in(answer.content.decode())

    return made


def link_in(text: str) -> str:
    found = re.search(r'data-copy="http://[^/"]+(/invitation/[^"]+)"', text)
    assert found is not None, text
    return found[1]


def opened(link: str) -> Client:
    browser = Client()
    answer = browser.get(link)
    assert (answer.status_code, answer["Location"]) == (302, "/invitation")
    return browser


def test_invitation__accepted_with_a_password__makes_the_account_with_its_roles_once(invite: Link) -> None:
    browser = opened(invite(**{"role-2": "editor", "environment-2": "default"}))
    shown = page(browser, "/invitation")

    answer = browser.post("/invitation", WORDS)
    again = opened(f"/invitation/{browser.cookies['parley-invitation'].value or 'x' * 43}")

    assert "admin</b> invites you" in shown
    assert "viewer</b> in prod" in shown
    assert "12 characters" in shown
    assert (answer.status_code, answer["Location"]) == (302, "/login")
    eve = USERS.objects.get(username="eve")
    assert eve.check_password(PASSWORD)
    grants = RoleGrant.objects.filter(user=eve).values_list("role", "environment")
    assert set(grants) == {("viewer", "prod"), ("editor", "default")}
    assert CLOSED in page(again, "/invitation", 404)
    told = {each.verb: (each.actor, each.detail.get("reason")) for each in AuditEvent.objects.order_by("pk")}
    number = Invitation.objects.get().pk
    assert told["invitation.made"] == ("admin", "joins")
    assert told["user.created"] == told["role.granted"] == ("admin", f"invitation {number}: joins")
    assert told["invitation.accepted"] == ("eve", "joins")


def test_invitation__opened_again_and_again_by_what_looks_into_mail__is_still_good(invite: Link) -> None:
    link = invite()
    answers = [Client().get(link) for _ in range(3)] + [Client().head(link)]
    row = Invitation.objects.get()

    for each in answers:
        assert (each["Referrer-Policy"], each["Cache-Control"]) == ("no-referrer", "no-store")
        assert each.cookies["parley-invitation"]["httponly"]
        assert each.cookies["parley-invitation"]["samesite"] == "Lax"
    browser = opened(link)
    page(browser, "/invitation")
    assert Invitation.objects.filter(pk=row.pk, accepted_at=None, digest=row.digest).exists()
    assert not USERS.objects.filter(username="eve").exists()
    assert browser.post("/invitation", WORDS).status_code == 302


def test_invitation__without_a_name__who_comes_chooses_one(invite: Link) -> None:
    browser = opened(invite(username="", address="eve@example.org"))

    taken = browser.post("/invitation", {**WORDS, "username": "admin"})
    done = browser.post("/invitation", {**WORDS, "username": "eve.b"})

    assert taken.status_code == 409
    assert 'value="admin"' in taken.content.decode()
    assert done.status_code == 302
    assert USERS.objects.filter(username="eve.b").exists()


def test_invitation__with_a_name__is_for_that_name_alone(invite: Link) -> None:
    opened(invite()).post("/invitation", {**WORDS, "username": "mallory"})

    assert USERS.objects.filter(username="eve").exists()
    assert not USERS.objects.filter(username="mallory").exists()


def test_password__with_all_that_is_wrong__says_all_of_it_and_the_link_stays_good(invite: Link) -> None:
    browser = opened(invite(username="", address="eve@example.org"))

    wrong = browser.post("/invitation", {"username": "two words", "new": "password", "again": "other"})

    assert wrong.status_code == 422
    text = wrong.content.decode()
    for says in ("A user name has", "differ", "too short", "too common"):
        assert says in text
    assert ">password<" not in text
    assert browser.post("/invitation", {**WORDS, "username": "eve"}).status_code == 302


@pytest.mark.parametrize("ended", ["withdrawn", "expired", "renewed", "unknown", "none"])
def test_link__that_opens_nothing__is_one_text_whatever_it_was(ended: str, invite: Link, root: Client) -> None:
    link = invite()
    row = Invitation.objects.get()
    act = {"id": str(row.pk), "reason": "no more"}
    newer = ""
    if ended == "withdrawn":
        assert root.post("/users/invitations", {**act, "action": "withdraw"}).status_code == 302
    elif ended == "renewed":
        newer = link_in(root.post("/users/invitations", {**act, "action": "renew"}).content.decode())
    elif ended == "expired":
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    browser = Client() if ended == "none" else opened(f"/invitation/{'x' * 43}" if ended == "unknown" else link)

    shown, sent = page(browser, "/invitation", 404), browser.post("/invitation", WORDS)

    assert CLOSED in shown
    assert "admin" not in shown
    assert "prod" not in shown
    assert sent.status_code == 404
    assert not USERS.objects.filter(username="eve").exists()
    if newer:
        assert opened(newer).post("/invitation", WORDS).status_code == 302


def test_invitation__whose_maker_administers_no_more__gives_nothing_and_says_so(sign_in: SignIn, invite: Link) -> None:
    dana = USERS.objects.create_user("dana")
    grant = RoleGrant.objects.create(user=dana, role="admin", environment="")
    browser = Client()
    browser.force_login(dana)
    link = link_in(browser.post("/users/invitations", FORM).content.decode())
    grant.delete()

    guest = opened(link)
    shown, sent = page(guest, "/invitation", 403), guest.post("/invitation", WORDS)

    assert "dana, who invited you, may not invite anybody now" in shown
    assert "viewer" not in shown
    assert sent.status_code == 403
    assert not USERS.objects.filter(username="eve").exists()
    assert "gives nothing" in page(sign_in(None, ""), "/users/invitations")


def test_invitation__whose_environment_was_made_anew__gives_nothing_there(invite: Link) -> None:
    environment_create(key="gone", policy=EnvironmentPolicy(), actor=SYSTEM)
    link = invite(**{"role-2": "admin", "environment-2": "gone"})
    environment_delete(key="gone", actor=SYSTEM)
    environment_create(key="gone", policy=EnvironmentPolicy(), actor=SYSTEM)
    browser = opened(link)

    assert "gone" not in page(browser, "/invitation").partition("<main")[2]
    assert browser.post("/invitation", WORDS).status_code == 302
    assert list(RoleGrant.objects.values_list("role", "environment")) == [("viewer", "prod")]


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"username": ""}, 422, "Say whom you invite"),
        ({"username": "two words"}, 422, "A user name has"),
        ({"username": "admin"}, 409, "somebody called"),
        ({"address": "nowhere"}, 422, "is no mail address"),
        ({"address": "a@example.org\nBcc: b@example.org"}, 422, "is no mail address"),
        ({"role-1": ""}, 422, "at least one role"),
        ({"environment-1": "absent"}, 422, "There is no environment"),
        ({"days": "0"}, 422, "from 1 to 30"),
        ({"days": "31"}, 422, "from 1 to 30"),
        ({"reason": ""}, 422, "Say why"),
        ({"action": "burn", "id": "1"}, 422, "no such action"),
        ({"action": "renew", "id": "987654"}, 404, "no such invitation"),
    ],
)
def test_form__with_a_mistake__says_which_and_invites_nobody(
    fields: dict[str, str], status: int, says: str, root: Client
) -> None:
    answer = root.post("/users/invitations", {**FORM, **fields})

    assert answer.status_code == status
    assert says in answer.content.decode()
    assert not Invitation.objects.exists()


def test_form__that_was_refused__keeps_what_was_typed(root: Client) -> None:
    given = {**FORM, "address": "nowhere", "role-2": "editor", "environment-2": "*", "days": "9"}

    text = root.post("/users/invitations", given).content.decode()

    for kept in ('value="eve"', 'value="nowhere"', 'value="joins"', 'value="9"', '<option value="editor" selected>'):
        assert kept in text
    assert '<option value="*" selected>' in text


def test_invitation__accepted_or_withdrawn__can_neither_be_sent_anew_nor_withdrawn(invite: Link, root: Client) -> None:
    link = invite()
    act = {"id": str(Invitation.objects.get().pk), "reason": "x"}
    opened(link).post("/invitation", WORDS)

    codes = [root.post("/users/invitations", {**act, "action": each}).status_code for each in ("renew", "withdraw")]

    assert codes == [409, 409]
    assert "Withdraw it" not in page(root, "/users/invitations")


def test_who_is_signed_in_with_an_account_of_parleys_own__cannot_accept_it(invite: Link, sign_in: SignIn) -> None:
    browser = sign_in(Role.VIEWER, "default")
    browser.get(invite(username="", address="eve@example.org"))

    shown, sent = page(browser, "/invitation"), browser.post("/invitation", WORDS)

    assert "sign out, and open the link again" in shown
    assert sent.status_code == 409
    assert not RoleGrant.objects.filter(environment="prod").exists()


def test_links__tried_too_often_from_one_address__have_to_wait(settings: Settings, invite: Link) -> None:
    most = settings.PARLEY.limits.logins_per_address_per_min
    link = invite()
    guesser = opened(f"/invitation/{'x' * 43}")

    codes = [guesser.get("/invitation").status_code for _ in range(most + 1)]
    refused = opened(link).get("/invitation")

    assert codes == [404] * most + [429]
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert not USERS.objects.filter(username="eve").exists()
    assert LoginAttempt.objects.exists()


def test_form_of_the_link__from_another_site__is_refused(invite: Link) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.get(invite())

    assert browser.post("/invitation", WORDS).status_code == 403
    assert not USERS.objects.exclude(username="admin").exists()


@pytest.mark.parametrize("path", ["/invitation/\x00", "/invitation/%0d%0aSet-Cookie:x", f"/invitation/{'é' * 50}"])
def test_link__that_is_no_token__opens_nothing(path: str) -> None:
    browser = Client()
    assert browser.get(path).status_code == 302
    assert CLOSED in page(browser, "/invitation", 404)


def test_invitations__administrator_of_one_environment__is_refused(sign_in: SignIn) -> None:
    browser = sign_in(Role.ADMIN, "default")

    assert browser.get("/users/invitations").status_code == 403
    assert browser.post("/users/invitations", FORM).status_code == 403
    assert not Invitation.objects.exists()


def test_token__is_nowhere_but_in_the_answer_that_shows_it(
    invite: Link, root: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"):
        link = invite()
        token = link.removeprefix("/invitation/")
        browser = opened(link)
        shown = page(browser, "/invitation")
        browser.post("/invitation", WORDS)
    listed = page(root, "/users/invitations") + page(root, "/audit")
    with connection.cursor() as cursor:
        stored = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - our own tables
            stored += [str(row) for row in cursor.fetchall()]

    assert any(token_digest(token) in row for row in stored)
    for place in (*stored, shown, listed, *(record.getMessage() for record in caplog.records)):
        assert token not in place


def test_list__of_a_hostile_reason_and_inviter__is_harmless(invite: Link, root: Client) -> None:
    link = invite()
    Invitation.objects.update(reason=HOSTILE, created_by=HOSTILE[:150])

    assert_harmless(page(root, "/users/invitations"))
    assert_harmless(page(opened(link), "/invitation"))


def test_command__invites_in_the_name_of_parley(environments: None) -> None:
    out, told = StringIO(), StringIO()

    call_command("invite", "eve", "--role=operator@prod", "--role=viewer", stdout=out, stderr=told)
    link = re.search(r"/invitation/\S+", out.getvalue())

    assert link is not None
    assert "Good once" in told.getvalue()
    assert opened(link[0]).post("/invitation", WORDS).status_code == 302
    assert set(RoleGrant.objects.values_list("role", "environment")) == {("operator", "prod"), ("viewer", "")}
    for wrong in ("king", "viewer@absent"):
        with pytest.raises(CommandError, match=r"no role|no environment"):
            call_command("invite", "mallory", f"--role={wrong}")
