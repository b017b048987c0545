"""Security keys over HTTP, by a key in software: added, asked at the sign-in, forged, copied, made up."""

import json
import re
from base64 import urlsafe_b64encode
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as tries
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from controlplane.accounts.logins import Caller
from controlplane.common.errors import InputInvalid
from controlplane.factors import security_keys
from controlplane.factors.models import RecoveryCode, SecurityKey
from controlplane.factors.security_keys import key_try, no_site, site
from controlplane.journal.models import AuditEvent
from tests.api.conftest import limited
from tests.support.authenticator import Authenticator, other_challenge
from tests.web.conftest import USERS
from tests.web.test_second_factor import OWN, SETUP, STEP, Later, codes_on, eve, first_step, later, require, signed_in

__all__ = ["eve", "later"]
pytestmark = pytest.mark.django_db
ORIGIN = "https://parley.example.org"


@pytest.fixture(autouse=True)
def named(settings: Settings) -> None:
    """A Parley with a name of its own."""
    settings.PARLEY = replace(settings.PARLEY, public_url=ORIGIN)


def options_on(answer: Any) -> dict[str, Any]:
    found = re.search(r'data-options="([^"]*)"', answer.content.decode())
    assert found is not None, answer.content.decode()
    options: dict[str, Any] = json.loads(unescape(found[1]))
    return options


def add(browser: Client, key: Authenticator, name: str = "blue key", **wrong: Any) -> Any:
    options = options_on(browser.post(OWN, {"action": "begin-key"}))
    return browser.post(OWN, {"action": "add-key", "name": name, "answer": key.create(options, **wrong)})


@pytest.fixture
def key() -> Authenticator:
    """A key that eve has added, and nothing else."""
    made = Authenticator(ORIGIN)
    assert add(first_step()[0], made).status_code == 201
    return made


def prove(browser: Client, answer: str) -> Any:
    return browser.post(STEP, {"way": "key", "answer": answer})


def test_key__added__is_named_gives_recovery_codes_and_signs_in(eve: User) -> None:
    key = Authenticator(ORIGIN)
    browser, _answer = first_step()

    made = add(browser, key, " my  blue key ")
    other, answer = first_step(leads_to="/tokens")
    done = prove(other, key.get(options_on(other.get(STEP))))

    assert (made.status_code, len(codes_on(made))) == (201, 10)
    assert "my blue key" in made.content.decode()
    assert answer["Location"] == STEP
    assert (done.status_code, done["Location"]) == (302, "/tokens")
    assert signed_in(other)
    assert SecurityKey.objects.get().last_used_at is not None
    assert AuditEvent.objects.latest("pk").detail["second_factor"] == "security key"


def test_key__options__name_the_site_of_the_public_url_whatever_the_request_says(
    key: Authenticator, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    browser, _answer = first_step()

    page = browser.get(STEP, headers={"Host": "evil.example.com", "Origin": "https://evil.example.com"})

    assert options_on(page)["rpId"] == "parley.example.org"
    assert f'data-origin="{ORIGIN}"' in page.content.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example.com"},
        {"origin": f"{ORIGIN}:8443"},
        {"origin": f"{ORIGIN}.evil.example.com"},
        {"origin": "http://parley.example.org"},
        {"rp_id": "example.org"},
        {"type": "webauthn.create"},
        {"flags": 0},
        {"key": ec.generate_private_key(ec.SECP256R1())},
        {"challenge": ""},
        {"count": 0},
    ],
    ids=lambda wrong: "=".join(map(str, next(iter(wrong.items()))))[:40],
)
def test_key__that_answers_wrongly__signs_nobody_in(wrong: dict[str, Any], key: Authenticator) -> None:
    SecurityKey.objects.update(sign_count=5)
    key.count = 5
    browser, _answer = first_step()

    answer = prove(browser, key.get(options_on(browser.get(STEP)), **wrong))

    assert answer.status_code == 422
    assert not signed_in(browser)


def test_key__challenge_of_nobody__signs_nobody_in(key: Authenticator) -> None:
    browser, _answer = first_step()
    options = options_on(browser.get(STEP))

    assert prove(browser, key.get(options, challenge=other_challenge(options))).status_code == 422


def test_key__answer_shown_again_or_late_or_elsewhere__is_worth_nothing(key: Authenticator, later: Later) -> None:
    browser, other = first_step()[0], first_step()[0]
    mine, theirs = options_on(browser.get(STEP)), options_on(other.get(STEP))
    elsewhere = prove(other, key.get(mine))
    answer = key.get(mine)
    first = prove(browser, answer)
    browser.post("/logout")
    first_step(browser)
    browser.get(STEP)
    again = prove(browser, answer)
    slow, _answer = first_step()
    late = key.get(options_on(slow.get(STEP)))
    later(301)

    assert [each.status_code for each in (elsewhere, first, again, prove(slow, late))] == [422, 302, 422, 422]
    assert theirs["challenge"] != mine["challenge"]


def test_key__answer_to_the_sign_in__is_no_answer_to_what_is_asked_later(
    key: Authenticator, later: Later, settings: Settings
) -> None:
    limited(settings, sudo_s=60)
    browser, _answer = first_step()
    answer = key.get(options_on(browser.get(STEP)), count=0)
    prove(browser, answer)
    later(61)
    form = {"action": "make-client", "subject": "pay", "environment": "default", "days": "7"}

    replayed = browser.post("/tokens?kind=client", {**form, "sudo_asked": "1", "sudo_key": answer})

    assert replayed.status_code == 422


def test_key__that_counts_nothing__is_taken_again_and_again(key: Authenticator) -> None:
    for _ in range(2):
        browser, _answer = first_step()
        assert prove(browser, key.get(options_on(browser.get(STEP)), count=0)).status_code == 302


def test_key__of_somebody_else__signs_nobody_in(key: Authenticator) -> None:
    foreign = Authenticator(ORIGIN)
    other = Client()
    other.force_login(USERS.objects.create_user("mallory"))
    add(other, foreign)
    browser, _answer = first_step()

    assert prove(browser, foreign.get(options_on(browser.get(STEP)))).status_code == 422


@pytest.mark.parametrize("wrong", [{"origin": "https://evil.example.com"}, {"rp_id": "x"}, {"type": "webauthn.get"}])
def test_add__answer_of_another_site__adds_nothing(wrong: dict[str, Any]) -> None:
    browser, _answer = first_step()

    answer = add(browser, Authenticator(ORIGIN), "key <b>", **wrong)

    assert answer.status_code == 422
    assert 'value="key &lt;b&gt;"' in answer.content.decode()  # what was typed is kept, and asked again
    assert options_on(answer)
    assert not SecurityKey.objects.exists()


def test_add__twice_or_without_a_name_or_an_eleventh__says_why(key: Authenticator) -> None:
    browser, _answer = first_step()
    prove(browser, key.get(options_on(browser.get(STEP))))

    same_name, same_key = add(browser, Authenticator(ORIGIN)), add(browser, key, "another")
    nameless = add(browser, Authenticator(ORIGIN), " \u202e ")
    for number in range(9):
        assert add(browser, Authenticator(ORIGIN), f"key {number}").status_code == 302
    eleventh = add(browser, Authenticator(ORIGIN), "one more")

    assert [each.status_code for each in (same_name, same_key, nameless, eleventh)] == [409, 409, 422, 409]
    assert SecurityKey.objects.count() == 10


def test_key__removed__signs_nobody_in_and_takes_the_recovery_codes_along(key: Authenticator) -> None:
    browser, _answer = first_step()
    prove(browser, key.get(options_on(browser.get(STEP))))
    row = SecurityKey.objects.get()

    foreign = browser.post(OWN, {"action": "remove-key", "key": str(row.pk + 1)})
    bad = browser.post(OWN, {"action": "remove-key", "key": "x"})
    done = browser.post(OWN, {"action": "remove-key", "key": str(row.pk)})

    assert (foreign.status_code, bad.status_code, done.status_code) == (404, 404, 302)
    assert not RecoveryCode.objects.exists()
    assert signed_in(first_step()[0])
    assert AuditEvent.objects.filter(verb="second-factor.removed").get().detail["name"] == "blue key"


def test_required__by_a_key__is_set_up_after_the_password(settings: Settings) -> None:
    require(settings)
    browser, _answer = first_step()
    key = Authenticator(ORIGIN)

    done = browser.post(SETUP, {"way": "key", "name": "laptop", "answer": key.create(options_on(browser.get(SETUP)))})

    assert (done.status_code, len(codes_on(done))) == (200, 10)
    assert signed_in(browser)


def test_sudo__by_a_key__goes_on(key: Authenticator, later: Later) -> None:
    browser, _answer = first_step()
    prove(browser, key.get(options_on(browser.get(STEP))))
    later(16 * 60)
    form = {"action": "make-client", "subject": "pay", "environment": "default", "days": "7"}

    question = browser.post("/tokens?kind=client", form)
    answer = key.get(options_on(question))
    done = browser.post("/tokens?kind=client", {**form, "sudo_asked": "1", "sudo_key": answer})
    later(16 * 60)
    again = browser.post("/tokens?kind=client", {**form, "subject": "b", "sudo_asked": "1", "sudo_key": answer})

    assert (done.status_code, again.status_code) == (201, 422)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://parley.example.org", "https://parley.example.org"),
        ("https://Parley.Example.org:443", "https://parley.example.org"),
        ("https://parley.example.org:8443", "https://parley.example.org:8443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:8000", ""),
        ("https://192.0.2.1", ""),
        ("https://[2001:db8::1]:8443", ""),
        ("http://parley.example.org", ""),
    ],
)
def test_site__of_a_public_url__is_what_browsers_use_keys_for(url: str, origin: str, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, public_url=url)

    found = site()

    assert (found.origin if found else "") == origin
    assert (no_site() == "") == bool(origin)


def test_no_site__is_said_and_the_other_ways_stay(key: Authenticator, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, public_url="http://192.0.2.1:8000")
    browser, _answer = first_step()

    page = browser.get(STEP).content.decode()

    assert "Security keys need a name with https:// in PARLEY_PUBLIC_URL, which is http://192.0.2.1:8000 now" in page
    assert "By a recovery code" in page
    assert prove(browser, "{}").status_code == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
RESPONSE = st.fixed_dictionaries(
    {"clientDataJSON": JSON, "authenticatorData": JSON, "signature": JSON, "attestationObject": JSON}
)
ANSWERS = st.one_of(
    st.text(max_size=50),
    JSON.map(json.dumps),
    st.fixed_dictionaries({"id": JSON, "rawId": JSON, "type": JSON, "response": RESPONSE | JSON}).map(json.dumps),
)


@tries(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(answer=ANSWERS)
def test_key__answer_that_somebody_made_up__is_refused_in_words(
    answer: str, key: Authenticator, eve: User, settings: Settings
) -> None:
    limited(settings, logins_per_min=10_000, codes_per_h=10_000)
    session = Client().session
    security_keys.key_ask(session, eve)
    question = security_keys.key_add_ask(session, eve)
    assert question is not None

    assert not key_try(session, eve, answer, caller=Caller("192.0.2.1"))
    with pytest.raises(InputInvalid):
        security_keys.key_add(session, eve, name="x", answer=answer, caller=Caller("192.0.2.1"))


@pytest.mark.parametrize("depth", [1, 500, 5_000])
def test_add__nested_without_end__is_refused_in_words(depth: int) -> None:
    browser, _answer = first_step()
    browser.post(OWN, {"action": "begin-key"})
    bomb = json.dumps(
        {
            "id": "eA",
            "rawId": "eA",
            "type": "public-key",
            "response": {
                "clientDataJSON": "e30",
                "attestationObject": urlsafe_b64encode(b"\x81" * depth).decode().rstrip("="),
            },
        }
    )

    answer = browser.post(OWN, {"action": "add-key", "name": "x", "answer": bomb})

    assert answer.status_code == 422
