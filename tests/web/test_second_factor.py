"""Second factors over HTTP: set up, asked for at the sign-in, replayed, guessed, lost."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pyotp
import pytest
import structlog
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.config.values import SecondFactor
from controlplane.factors.models import AuthenticatorApp, RecoveryCode
from controlplane.factors.selectors import people_without
from controlplane.journal.models import AuditEvent
from tests.api.conftest import limited
from tests.web.conftest import USERS

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
STEP, SETUP, OWN = "/login/second-factor", "/login/second-factor/setup", "/account/second-factor"
Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Lets time pass, from the begin of a step of 30 s."""
    start = datetime.now(timezone.get_current_timezone())
    clock = [start - timedelta(seconds=start.timestamp() % 30 - 1)]

    def passes(seconds: float) -> None:
        clock[0] += timedelta(seconds=seconds)

    monkeypatch.setattr(timezone, "now", lambda: clock[0])
    return passes


@pytest.fixture(autouse=True)
def eve(settings: Settings, two_environments: None, later: Later) -> User:
    """Somebody with a password."""
    user: User = USERS.objects.create_user("eve", password=PASSWORD, is_superuser=True)
    return user


def first_step(browser: Client | None = None, address: str = "192.0.2.1", leads_to: str = "") -> tuple[Client, Any]:
    """A browser in which the password was right, and the answer to it."""
    browser = browser or Client()
    form = {"username": "eve", "password": PASSWORD, "next": leads_to}
    return browser, browser.post("/login", form, REMOTE_ADDR=address)


def secret_on(answer: Any) -> str:
    found = re.search(r'aria-label="The secret of the app">([A-Z2-7 ]+)<', answer.content.decode())
    assert found is not None, answer.content.decode()
    return found[1].replace(" ", "")


def codes_on(answer: Any) -> list[str]:
    return re.findall(r"\b(?:[a-z2-7]{4}-){3}[a-z2-7]{4}\b", answer.content.decode().partition("data-copy")[0])


def code_now(secret: str, steps_off: int = 0) -> str:
    return pyotp.TOTP(secret).generate_otp(int(timezone.now().timestamp()) // 30 + steps_off)


def set_up(later: Later) -> tuple[str, list[str]]:
    """An app for eve, set up as a person does; its secret and the recovery codes. The next code is a new one."""
    browser, _answer = first_step()
    browser.post(OWN, {"action": "begin-app"})
    secret = secret_on(browser.get(OWN))
    made = browser.post(OWN, {"action": "add-app", "code": code_now(secret)})
    assert made.status_code == 201, made.content.decode()
    later(60)
    return secret, codes_on(made)


def second_step(browser: Client, code: str, way: str = "app", address: str = "192.0.2.1") -> Any:
    return browser.post(STEP, {"way": way, "code": code}, REMOTE_ADDR=address)


def signed_in(browser: Client) -> bool:
    return browser.get("/account").status_code == 200


def verbs() -> list[str]:
    return list(AuditEvent.objects.order_by("pk").values_list("verb", flat=True))


def require(settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, second_factor=SecondFactor.REQUIRED)


# Set up


def test_app__begun__counts_for_nothing_before_a_code_of_it_was_right(later: Later) -> None:
    browser, _answer = first_step()
    browser.post(OWN, {"action": "begin-app"})
    page = browser.get(OWN)

    wrong = browser.post(OWN, {"action": "add-app", "code": "000000"})

    assert page["Cache-Control"] == "no-store"
    assert "data:image/svg+xml" in page.content.decode()
    assert wrong.status_code == 422
    assert secret_on(wrong) == secret_on(page)
    assert not AuthenticatorApp.objects.exists()
    assert first_step()[1]["Location"] == "/"


def test_app__set_up__shows_ten_recovery_codes_once_and_keeps_neither_them_nor_the_secret_readable(
    later: Later, eve: User
) -> None:
    secret, codes = set_up(later)

    app = AuthenticatorApp.objects.get(user=eve)
    assert len(set(codes)) == 10
    assert secret.encode() not in bytes(app.sealed)
    stored = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert len(stored) == 10
    assert not {part for code in codes for part in (code, code.replace("-", ""))} & stored
    everything = str(list(AuditEvent.objects.values())) + str([each.get_decoded() for each in Session.objects.all()])
    assert not [each for each in (secret, *codes) if each in everything]
    assert verbs()[-2:] == ["login.succeeded", "second-factor.added"]


def test_app__another_one_instead__makes_the_first_worthless_and_keeps_the_recovery_codes(later: Later) -> None:
    secret, codes = set_up(later)
    browser, _answer = first_step()
    second_step(browser, code_now(secret))
    browser.post(OWN, {"action": "begin-app"})
    newer = secret_on(browser.get(OWN))

    answer = browser.post(OWN, {"action": "add-app", "code": code_now(newer)})
    later(60)

    assert (answer.status_code, RecoveryCode.objects.count()) == (302, len(codes))
    other, _answer = first_step()
    assert second_step(other, code_now(secret)).status_code == 422
    assert second_step(other, code_now(newer)).status_code == 302


def test_app__removed__the_password_alone_signs_in_and_the_recovery_codes_are_gone(later: Later) -> None:
    secret, _codes = set_up(later)
    browser, _answer = first_step()
    second_step(browser, code_now(secret))

    answer = browser.post(OWN, {"action": "remove-app"})

    assert answer.status_code == 302
    assert not RecoveryCode.objects.exists()
    assert signed_in(first_step()[0])
    assert verbs()[-2:] == ["second-factor.removed", "login.succeeded"]


def test_recovery_codes__made_again__the_old_ones_are_worth_nothing(later: Later) -> None:
    secret, old = set_up(later)
    browser, _answer = first_step()
    second_step(browser, code_now(secret))

    new = codes_on(browser.post(OWN, {"action": "renew-codes"}))

    other, _answer = first_step()
    assert (len(new), second_step(other, old[0], "recovery").status_code) == (10, 422)
    assert second_step(other, new[0], "recovery").status_code == 302


@pytest.mark.parametrize(
    "form", [{"action": "burn"}, {"action": "add-app", "code": "123456"}, {"action": "renew-codes"}]
)
def test_own__form_that_fits_nothing__says_so_and_changes_nothing(form: dict[str, str]) -> None:
    browser, _answer = first_step()

    answer = browser.post(OWN, form)

    assert answer.status_code in (409, 422)
    assert "Nothing was changed." in answer.content.decode()
    assert not RecoveryCode.objects.exists()


# Signing in


def test_sign_in__password_alone__reaches_nothing_until_the_code_came(later: Later) -> None:
    secret, _codes = set_up(later)
    browser, answer = first_step(leads_to="/tokens")

    assert (answer.status_code, answer["Location"]) == (302, STEP)
    for path in ("/", "/account", "/tokens", "/users", OWN):
        assert browser.get(path)["Location"].startswith("/login?next="), path
    assert browser.get("/api/v1/environments").status_code == 401
    assert browser.post("/tokens", {"action": "make-api"})["Location"].startswith("/login?next=")
    assert verbs().count("login.succeeded") == 1  # that of the set-up

    done = second_step(browser, code_now(secret))

    assert (done.status_code, done["Location"]) == (302, "/tokens")
    assert signed_in(browser)
    assert AuditEvent.objects.latest("pk").detail["second_factor"] == "authenticator app"


def test_sign_in__session_of_the_first_step__is_a_new_one_and_so_is_that_of_the_second(later: Later) -> None:
    secret, _codes = set_up(later)
    browser = Client()
    browser.get("/login")
    planted = browser.session
    planted["planted"] = "x"
    planted.save()
    browser.cookies["sessionid"] = str(planted.session_key)

    first_step(browser)
    half = browser.cookies["sessionid"].value
    second_step(browser, code_now(secret))
    whole = browser.cookies["sessionid"].value

    assert len({planted.session_key, half, whole}) == 3
    assert "planted" not in browser.session
    for old in (planted.session_key, half):
        thief = Client()
        thief.cookies["sessionid"] = str(old)
        assert not signed_in(thief)
        assert thief.get(STEP).status_code == 422


def test_sign_in__code_shown_twice__counts_once(later: Later) -> None:
    secret, _codes = set_up(later)
    code = code_now(secret)
    first, second = first_step()[0], first_step()[0]

    codes = [second_step(each, code).status_code for each in (first, second)]
    later(20)
    codes.append(second_step(second, code).status_code)  # still in its window
    codes.append(second_step(second, code_now(secret, -1)).status_code)  # older than what was taken
    later(30)
    codes.append(second_step(second, code_now(secret)).status_code)

    assert codes == [302, 422, 422, 422, 302]


def test_sign_in__recovery_code__signs_in_once(later: Later) -> None:
    _secret, codes = set_up(later)
    first, second = first_step()[0], first_step()[0]

    answers = [second_step(each, codes[3].upper(), "recovery").status_code for each in (first, second)]

    assert answers == [302, 422]
    assert RecoveryCode.objects.count() == 9
    assert "recovery-code.used" in verbs()


def test_sign_in__ten_minutes_later__begins_again(later: Later) -> None:
    secret, _codes = set_up(later)
    slow, _answer = first_step()
    later(599)
    in_time = slow.get(STEP)
    later(2)

    late = second_step(slow, code_now(secret))

    assert (in_time.status_code, late.status_code) == (200, 422)
    assert "Begin again." in late.content.decode()
    assert not signed_in(slow)


@pytest.mark.parametrize("ended", ["by a new password", "by being turned off"])
def test_sign_in__ended_between_its_steps__begins_again(ended: str, later: Later, eve: User) -> None:
    secret, _codes = set_up(later)
    browser, _answer = first_step()
    if ended == "by a new password":
        eve.set_password("another staple 77")
    eve.is_active = ended == "by a new password"
    eve.save()

    assert second_step(browser, code_now(secret)).status_code == 422


def test_sign_in__without_the_first_step__there_is_no_second(later: Later) -> None:
    secret, codes = set_up(later)
    stranger = Client()

    answers = [stranger.get(STEP), second_step(stranger, code_now(secret)), second_step(stranger, codes[0], "recovery")]
    answers += [stranger.get(SETUP), stranger.post(SETUP, {"code": "123456"})]

    assert {each.status_code for each in answers} == {422}
    assert RecoveryCode.objects.count() == 10


def test_sign_in__somebody_with_a_factor__sets_up_no_other_by_the_password_alone(
    later: Later, settings: Settings
) -> None:
    set_up(later)
    require(settings)
    browser, _answer = first_step()

    shown, sent = browser.get(SETUP), browser.post(SETUP, {"code": "123456"})

    assert (shown["Location"], sent["Location"]) == (STEP, STEP)


# Guessing


def test_codes__guessed__as_many_as_passwords_from_one_address_and_so_many_an_hour_for_the_account(
    later: Later, settings: Settings
) -> None:
    secret, _codes = set_up(later)
    limited(settings, codes_per_h=12)
    browser, _answer = first_step()

    here = [second_step(browser, f"{number:06}").status_code for number in range(7)]
    later(60)
    elsewhere = [
        second_step(browser, f"{number:06}", address=f"198.51.100.{number}").status_code for number in range(10, 20)
    ]
    right = second_step(browser, code_now(secret), address="203.0.113.1")

    assert here == [422] * 5 + [429] * 2
    assert elsewhere == [422] * 7 + [429] * 3
    assert (right.status_code, right["Retry-After"]) == (429, "3600")
    assert not signed_in(browser)


def test_codes__guessed_by_somebody_with_the_password__do_not_keep_a_known_browser_out(
    later: Later, settings: Settings
) -> None:
    secret, _codes = set_up(later)
    own, _answer = first_step()
    assert second_step(own, code_now(secret)).status_code == 302
    own.post("/logout")
    later(60)
    limited(settings, codes_per_h=5)
    thief, _answer = first_step(address="198.51.100.1")
    assert [second_step(thief, "000000", address="198.51.100.1").status_code for _ in range(6)] == [422] * 5 + [429]

    first_step(own)

    assert second_step(own, code_now(secret)).status_code == 302


def test_codes__guessed_by_a_stranger_without_the_password__count_for_nobody(later: Later) -> None:
    secret, _codes = set_up(later)
    for _ in range(30):
        second_step(Client(), "000000")

    browser, _answer = first_step()

    assert second_step(browser, code_now(secret)).status_code == 302


@pytest.mark.parametrize("typed", ["", "\0", "٣" * 6, "x" * 5_000, "<img src=x onerror=alert(1)>", "1e5"])
@pytest.mark.parametrize("way", ["app", "recovery", "key", "none"])
def test_codes__anything_typed__is_wrong_and_nothing_breaks(typed: str, way: str, later: Later) -> None:
    set_up(later)
    browser, _answer = first_step()

    answer = browser.post(STEP, {"way": way, "code": typed, "answer": typed})

    assert answer.status_code == 422
    assert "onerror" not in answer.content.decode()


def test_codes__wrong_and_right__stand_in_no_log_line(later: Later) -> None:
    with structlog.testing.capture_logs() as said:
        secret, codes = set_up(later)
        browser, _answer = first_step()
        second_step(browser, "135790")
        second_step(browser, code_now(secret))

    text = str(said) + str(list(AuditEvent.objects.values()))
    assert not [each for each in (secret, "135790", *codes) if each in text]


# Required


def test_required__somebody_without_one__sets_it_up_after_the_password_and_can_do_nothing_else_before(
    later: Later, settings: Settings
) -> None:
    require(settings)
    browser, answer = first_step(leads_to="/tokens")
    assert answer["Location"] == STEP
    assert browser.get(STEP)["Location"] == SETUP
    page = browser.get(SETUP)
    assert browser.get("/users")["Location"].startswith("/login?next=")
    assert second_step(browser, "000000")["Location"] == SETUP

    wrong = browser.post(SETUP, {"code": "000000"})
    done = browser.post(SETUP, {"code": code_now(secret_on(page))})

    assert (wrong.status_code, secret_on(wrong)) == (422, secret_on(page))
    assert len(codes_on(done)) == 10
    assert 'href="/tokens"' in done.content.decode()
    assert signed_in(browser)


def test_required__session_that_began_by_the_password_alone__ends(later: Later, settings: Settings) -> None:
    browser, _answer = first_step()
    require(settings)

    answer = browser.get("/account")

    assert answer["Location"] == "/login?next=/account"
    assert "A second factor is required now" in browser.get("/login").content.decode()
    assert Client().get("/healthz").status_code == 200


def test_required__last_one__is_not_removed_by_its_owner(later: Later, settings: Settings) -> None:
    secret, _codes = set_up(later)
    require(settings)
    browser, _answer = first_step()
    second_step(browser, code_now(secret))

    answer = browser.post(OWN, {"action": "remove-app"})

    assert answer.status_code == 409
    assert "set up another before you remove it" in answer.content.decode()


def test_optional__people_page__says_how_many_have_none(later: Later, eve: User) -> None:
    USERS.objects.create_user("off", is_active=False)
    USERS.objects.create_user("ana", password=PASSWORD)
    USERS.objects.create_user("of-the-provider")
    set_up(later)
    admin = Client()
    admin.force_login(eve)

    text = admin.get("/users").content.decode()

    assert people_without() == (1, 2)
    assert "1 of 2 people who may sign in by a password has no second factor." in text


# Lost


def test_lost__administrator_removes_it__sessions_end_and_it_stands_in_the_log(later: Later, eve: User) -> None:
    secret, _codes = set_up(later)
    own, _answer = first_step()
    second_step(own, code_now(secret))
    admin = Client()
    admin.force_login(USERS.objects.create_superuser("root"))

    page = admin.get(f"/users/{eve.pk}").content.decode()
    bare = admin.post(f"/users/{eve.pk}", {"action": "forget-factors"})
    done = admin.post(f"/users/{eve.pk}", {"action": "forget-factors", "reason": "lost phone"})
    again = admin.post(f"/users/{eve.pk}", {"action": "forget-factors", "reason": "lost phone"})

    assert "Authenticator app" in page
    assert (bare.status_code, done.status_code, again.status_code) == (422, 302, 409)
    assert not signed_in(own)
    assert signed_in(admin)
    assert not RecoveryCode.objects.exists()
    told = AuditEvent.objects.get(verb="second-factor.forgotten")
    assert (told.actor, told.subject, told.detail["reason"]) == ("root", "eve", "lost phone")
    assert told.detail["sessions"] >= 1
    assert signed_in(first_step()[0])


def test_lost__by_whoever_may_not__stays(later: Later, eve: User) -> None:
    secret, _codes = set_up(later)
    own, _answer = first_step()
    second_step(own, code_now(secret))
    form = {"action": "forget-factors", "reason": "because"}
    nobody = Client()
    nobody.force_login(USERS.objects.create_user("ana"))

    assert nobody.post(f"/users/{eve.pk}", form).status_code == 403
    assert own.post(f"/users/{eve.pk}", form).status_code == 409
    assert AuthenticatorApp.objects.exists()


def test_lost__last_administrator__is_helped_by_the_command(later: Later, capsys: pytest.CaptureFixture[str]) -> None:
    set_up(later)

    call_command("forget_factors", "eve", "--reason", "phone in the lake")

    assert "eve has no second factor any more" in capsys.readouterr().out
    assert AuditEvent.objects.latest("pk").detail["reason"] == "phone in the lake"
    assert signed_in(first_step()[0])
    with pytest.raises(CommandError, match="has no second factor"):
        call_command("forget_factors", "eve", "--reason", "again")
    with pytest.raises(CommandError, match="There is no user"):
        call_command("forget_factors", "nobody", "--reason", "why")
