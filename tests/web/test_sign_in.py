"""Signing in among people who guess: what one name and one network may try, and who gets in anyway (threat 22)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.models import LoginAttempt
from controlplane.journal.models import AuditEvent
from tests.api.conftest import limited
from tests.web.conftest import USERS

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
KNOWN = "parley-browser"


class Counting(MD5PasswordHasher):
    """A hasher that says how many passwords were worked on."""

    worked: list[str] = []

    def verify(self, password: str, encoded: str) -> bool:
        self.worked.append(password)
        return super().verify(password, encoded)


@pytest.fixture(autouse=True)
def people(settings: Settings, two_environments: None) -> None:
    settings.PASSWORD_HASHERS = ["tests.web.test_sign_in.Counting"]
    limited(settings, logins_per_name_per_min=10)  # so that a crowd is a dozen
    Counting.worked.clear()
    for name in ("admin", "eve"):
        USERS.objects.create_user(name, password=PASSWORD)


def sign_in(name: str, password: str, address: str = "192.0.2.1", browser: Client | None = None) -> Any:
    return (browser or Client()).post("/login", {"username": name, "password": password}, REMOTE_ADDR=address)


def statuses(count: int, name: str = "admin", address: str = "192.0.2.1", browser: Client | None = None) -> list[int]:
    """What so many wrong passwords are answered with."""
    return [sign_in(name, "wrong", address, browser).status_code for _ in range(count)]


def crowd(count: int) -> list[int]:
    """Guesses at `admin`, in several spellings, from as many networks."""
    return [
        sign_in(" " * (number % 9) + "Admin", "wrong", f"203.{number // 250}.{number % 250}.1").status_code
        for number in range(count)
    ]


def known_browser(name: str = "admin") -> Client:
    """A browser in which somebody signed in before, and out again."""
    browser = Client()
    assert sign_in(name, PASSWORD, "198.51.100.9", browser).status_code == 302
    browser.post("/logout")
    return browser


def test_login__own_success_between_guesses__frees_nothing_for_another_name() -> None:
    codes: list[int] = []
    for _ in range(10):
        codes += statuses(4)
        sign_in("eve", PASSWORD)

    assert codes == [200] * 5 + [429] * 35


def test_login__own_success__forgets_ones_own_mistakes() -> None:
    assert statuses(4, "eve") == [200] * 4
    assert sign_in("eve", PASSWORD).status_code == 302

    assert statuses(6, "eve") == [200] * 5 + [429]


def test_login__name_respelled__is_counted_as_the_name_it_is_read_as() -> None:
    spellings = ["admin", " admin", "admin  ", "ADMIN", "\uff41dmin", "\tadmin", "Admin "]

    codes = [sign_in(each, "wrong").status_code for each in spellings]

    assert codes == [200] * 5 + [429] * 2


def test_login__addresses_of_one_ipv6_network__are_one_caller() -> None:
    codes = [sign_in("admin", "wrong", f"2001:db8:0:1::{number:x}").status_code for number in range(1, 8)]

    assert codes == [200] * 5 + [429] * 2
    assert sign_in("admin", "wrong", "2001:db8:0:2::1").status_code == 200
    assert statuses(5, "eve", "198.51.100.1") == [200] * 5
    assert sign_in("eve", "wrong", "::ffff:198.51.100.1").status_code == 429


def test_login__many_names_from_one_address__429_in_the_end_and_nobody_else_is_kept_out(settings: Settings) -> None:
    limited(settings, logins_per_address_per_min=10)

    codes = [sign_in(f"name-{number}", "wrong").status_code for number in range(12)]

    assert codes == [200] * 10 + [429] * 2
    assert sign_in("eve", PASSWORD).status_code == 429
    assert sign_in("eve", PASSWORD, "192.0.2.2").status_code == 302


def test_login__others_guess_at_a_name__the_right_password_from_a_network_that_did_not_gets_in() -> None:
    assert set(crowd(12)) == {200}

    assert sign_in("admin", PASSWORD, "198.51.100.7").status_code == 302


def test_login__name_that_many_guess_at__one_network_may_try_once_in_ten_minutes() -> None:
    crowd(12)

    first, second = (sign_in("admin", "wrong", f"198.51.100.{number}") for number in (7, 8))
    LoginAttempt.objects.update(at=timezone.now() - timedelta(minutes=2))
    crowd(12)
    third = sign_in("admin", PASSWORD, "198.51.100.7")
    LoginAttempt.objects.update(at=timezone.now() - timedelta(minutes=11))

    assert [each.status_code for each in (first, second, third)] == [200, 429, 429]
    assert second["Retry-After"] == "600"
    assert b"Wait 10 minutes" in second.content
    assert sign_in("admin", PASSWORD, "198.51.100.7").status_code == 302


def test_login__name_that_many_guess_at__slows_no_other_name() -> None:
    crowd(12)

    assert statuses(5, "eve", "203.0.1.1") == [200] * 5


@pytest.mark.parametrize("address", ["192.0.2.1", "198.51.100.9", "203.0.7.1"])
def test_login__others_guess_at_a_name__a_browser_that_knows_it_gets_in_from_anywhere(address: str) -> None:
    browser = known_browser()
    statuses(9)
    statuses(9, "admin", "198.51.100.9")
    crowd(12)

    assert sign_in("admin", "mistyped", address, browser).status_code == 200
    assert sign_in("admin", PASSWORD, address, browser).status_code == 302


def test_known_browser__guesses_itself__has_the_bound_of_one_caller_and_costs_no_other_any_attempt() -> None:
    browser = known_browser()

    assert statuses(7, browser=browser) == [200] * 5 + [429] * 2
    assert statuses(5) == [200] * 5


def test_known_browser__cookie__is_kept_from_scripts_and_other_sites() -> None:
    cookie = known_browser().cookies[KNOWN]

    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["secure"], cookie["path"]) == ("Lax", "", "/")
    assert cookie["max-age"] == 90 * 24 * 3600
    assert "admin" not in cookie.value


def test_known_browser__of_a_site_with_https__its_cookie_goes_nowhere_else(settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = True

    cookie = known_browser().cookies[f"__Host-{KNOWN}"]

    assert cookie["secure"]


@pytest.mark.parametrize("spoiled", ["of somebody else", "forged", "of an old password", "expired"])
def test_known_browser__that_is_none__is_held_up_like_any(spoiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = known_browser("eve" if spoiled == "of somebody else" else "admin")
    if spoiled == "forged":
        browser.cookies[KNOWN] = browser.cookies[KNOWN].value[:-1] + "_"
    elif spoiled == "of an old password":
        user = USERS.objects.get(username="admin")
        user.set_password(PASSWORD)  # the same one, under another salt
        user.save()
    elif spoiled == "expired":
        late = timezone.now().timestamp() + 91 * 24 * 3600
        monkeypatch.setattr("django.core.signing.time.time", lambda: late)
    statuses(5)

    assert sign_in("admin", PASSWORD, browser=browser).status_code == 429


def test_login__name_that_nobody_has__is_answered_and_worked_on_like_any() -> None:
    def seen(name: str) -> tuple[list[int], int, int]:
        worked, rows = len(Counting.worked), LoginAttempt.objects.count()
        codes = statuses(7, name, f"192.0.2.{len(name)}")
        return codes, len(Counting.worked) - worked, LoginAttempt.objects.count() - rows

    # Django works on the password of a name nobody has by making a hash of it, which is as much work.
    (known, worked, rows), (unknown, _, same_rows) = seen("admin"), seen("nobody-at-all")

    assert (known, worked) == ([200] * 5 + [429] * 2, 5)
    assert (unknown, same_rows) == (known, rows)


def test_login__refused__works_on_no_password_and_the_log_says_it_once() -> None:
    statuses(5)
    worked = len(Counting.worked)

    assert statuses(20) == [429] * 20
    assert len(Counting.worked) == worked
    assert AuditEvent.objects.filter(verb="login.throttled").count() == 1


@pytest.mark.django_db(transaction=True)
def test_login__many_at_the_same_moment__no_more_go_on_than_may() -> None:
    ready = threading.Barrier(8)

    def attempt(number: int) -> int:
        ready.wait(timeout=30)
        try:
            code: int = sign_in("admin", f"guess {number}").status_code
            return code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(attempt, range(8)))

    assert set(codes) <= {200, 429}
    assert codes.count(200) == len(Counting.worked) <= 5


def account(browser: Client, old: str) -> Any:
    return browser.post("/account", {"old": old, "new": "another staple 77", "again": "another staple 77"})


def test_account__old_password_guessed__429_after_as_many_as_at_the_sign_in_and_only_for_that_session() -> None:
    eve = USERS.objects.get(username="eve")
    stolen, own = Client(), Client()
    stolen.force_login(eve)

    codes = [account(stolen, f"guess {number}").status_code for number in range(6)]
    refused = account(stolen, PASSWORD)
    sign_in("eve", PASSWORD, browser=own)

    assert codes == [422] * 5 + [429]
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert b"Too many attempts" in refused.content
    assert len(Counting.worked) == 6
    assert account(own, PASSWORD).status_code == 302
    verbs = [each.verb for each in AuditEvent.objects.filter(subject="eve").order_by("pk")]
    assert verbs[:6] == ["login.failed"] * 5 + ["login.throttled"]
