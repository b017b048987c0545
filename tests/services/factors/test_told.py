"""What people are told by mail of their second factor, and what happens at the same moment; on both databases."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyotp
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.logins import Caller
from controlplane.accounts.principal import SYSTEM
from controlplane.common.errors import InputInvalid
from controlplane.config import values
from controlplane.factors.models import AuthenticatorApp, RecoveryCode
from controlplane.factors.services import app_add, code_try, factor_remove, forget
from controlplane.factors.telling import address_change
from controlplane.factors.values import Way
from controlplane.journal.models import AuditEvent
from tests.support.mailbox import Mailbox, mailbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database")]

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture
def letters(settings: Settings) -> Iterator[Mailbox]:
    """A mail server that is configured."""
    with mailbox() as box:
        mail = values.mail(f"smtp://127.0.0.1:{box.port}?from=parley@example.org")
        settings.PARLEY = replace(settings.PARLEY, mail=mail)
        settings.EMAIL_BACKEND = "controlplane.notify.mailing.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = mail.host, mail.port
        settings.DEFAULT_FROM_EMAIL = mail.sender
        yield box


def ana(email: str = "ana@example.org") -> User:
    return User.objects.create_user("ana", password="pw", email=email)


def code(steps_off: int = 0) -> str:
    return pyotp.TOTP(SECRET).generate_otp(int(timezone.now().timestamp()) // 30 + steps_off)


def caller(number: int = 1) -> Caller:
    return Caller(address=f"192.0.2.{number}")


def test_person__is_told_of_each_change_and_of_no_secret(letters: Mailbox) -> None:
    user = ana()
    codes = app_add(user=user, secret=SECRET, code=code(), caller=caller())
    assert code_try(user, Way.RECOVERY, codes[0], caller=caller())
    factor_remove(user=user, way=Way.APP, caller=caller())
    app_add(user=user, secret=SECRET, code=code(1), caller=caller())
    forget(user, actor=SYSTEM, reason="lost phone")

    texts = [each.get_content() for each in letters.received]
    assert [text.partition("\n")[0].strip() for text in texts] == [
        "An authenticator app was added to your sign-in.",
        "A recovery code of your sign-in was used; 9 are left.",
        "The authenticator app was removed from your sign-in.",
        "An authenticator app was added to your sign-in.",
        f"Every second factor was removed from your sign-in by {SYSTEM.name}: lost phone",
    ]
    assert {each["To"] for each in letters.received} == {"ana@example.org"}
    assert not [secret for secret in (SECRET, *codes) if secret in str(texts)]


def test_address__changed__is_told_and_so_is_the_one_of_before(letters: Mailbox) -> None:
    user = ana()

    address_change(user=user, address=" new@example.org ", caller=caller())
    address_change(user=user, address="new@example.org", caller=caller())
    address_change(user=user, address="", caller=caller())

    assert [each["To"] for each in letters.received] == ["new@example.org", "ana@example.org", "new@example.org"]
    assert User.objects.get().email == ""
    assert AuditEvent.objects.filter(verb="user.address-changed").count() == 2


@pytest.mark.parametrize(
    "address", ["x", "a@b\nBcc: c@d.example", f"{'a' * 250}@example.org", "a@example.org\0", "<a@b.example>"]
)
def test_address__that_is_none__is_refused_in_words(address: str) -> None:
    with pytest.raises(InputInvalid, match="no mail address"):
        address_change(user=ana(), address=address, caller=caller())

    assert User.objects.get().email == "ana@example.org"


def test_person__whose_mail_is_not_taken_or_who_has_no_address__gets_it_done_all_the_same(letters: Mailbox) -> None:
    letters.refuses = "550 nobody here"
    user = ana()

    app_add(user=user, secret=SECRET, code=code(), caller=caller())
    user.email = ""
    factor_remove(user=user, way=Way.APP, caller=caller())

    assert letters.received == []
    assert not AuthenticatorApp.objects.exists()


@pytest.mark.parametrize("way", [Way.APP, Way.RECOVERY])
def test_code__shown_by_many_at_one_moment__is_taken_once(way: Way) -> None:
    user = ana()
    codes = app_add(user=user, secret=SECRET, code=code(-1), caller=caller())
    shown = codes[0] if way is Way.RECOVERY else code()
    ready = threading.Barrier(4)

    def attempt(number: int) -> bool:
        ready.wait(timeout=30)
        try:
            return code_try(user, way, shown, caller=caller(number))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(attempt, range(1, 5)))

    assert taken.count(True) == 1
    assert RecoveryCode.objects.count() == (9 if way is Way.RECOVERY else 10)
