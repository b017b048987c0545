"""The form of the common fields beside the editor's text: it edits that text, and nothing typed is lost by either."""

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import Role
from controlplane.catalog.selectors import resource_get
from tests.web.conftest import HOSTILE, SignIn, assert_harmless, page
from xdscore.resource_types import CLUSTER
from xdscore.schema.sensitive import may_hold_secrets

pytestmark = pytest.mark.django_db

PART = {"X-Parley-Part": "1"}
NEW = "/e/default/resources/new"
EDIT = "/e/default/resource/edit?type=cluster&name=pay"
TEXT = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: pay  # mine\nconnect_timeout: 3s\n'
TIMEOUT = {"was:/0/connect_timeout": "3s"}


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in(Role.EDITOR, "default")


def text_in(answer: Any) -> str:
    found = re.search(r'<textarea[^>]* id="text"[^>]*>(.*?)</textarea>', answer.content.decode(), re.DOTALL)
    assert found is not None
    return html.unescape(found[1]).removeprefix("\n")


def test_apply__without_scripts__changes_the_text_and_stores_nothing(editor: Client, written: str) -> None:
    given = {"text": TEXT, "revision": "2", "message": "why", **TIMEOUT, "field:/0/connect_timeout": "4s"}

    answer = editor.post(EDIT, {**given, "action": "fields"})

    shown = answer.content.decode()
    assert text_in(answer) == TEXT.replace("3s", "4s")
    assert 'name="field:/0/connect_timeout" value="4s"' in shown
    assert 'value="why"' in shown
    assert '<details class="disclosure mt-3" id="form" open>' in shown
    assert "What changes" in shown
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").revision == 2


def test_apply__value_that_is_wrong__is_told_at_its_field(editor: Client, written: str) -> None:
    given = {"text": TEXT, "revision": "2", **TIMEOUT, "field:/0/connect_timeout": "soon"}

    answer = editor.post(EDIT, {**given, "action": "fields"})

    shown = html.unescape(answer.content.decode())
    assert answer.status_code == 422
    assert 'value="soon" maxlength="2000"' in shown
    assert 'aria-invalid="true" aria-describedby="field-0-connect_timeout-wrong"' in shown
    assert text_in(answer) == TEXT.replace("3s", "soon")


def test_apply__by_a_script__answers_text_and_form(editor: Client, written: str) -> None:
    given = {"text": TEXT, "action": "fields", **TIMEOUT, "field:/0/connect_timeout": "4s"}

    answer: Any = editor.post(EDIT, given, headers=PART).json()

    assert answer["text"] == TEXT.replace("3s", "4s")
    assert 'name="was:/0/connect_timeout" value="4s"' in answer["fields"]


def test_save__with_fields_that_were_not_applied__stores_them(editor: Client, written: str) -> None:
    given = {"text": TEXT, "revision": "2", **TIMEOUT, "field:/0/connect_timeout": "7s", "action": "save"}

    answer = editor.post(EDIT, given)

    stored = resource_get(environment_key="default", kind=CLUSTER, name="pay")
    assert (answer.status_code, stored.revision) == (302, 3)
    assert "7s" in page(editor, "/e/default/resource?type=cluster&name=pay")


def test_save__with_a_field_that_cannot_be_applied__stores_nothing_and_says_why(editor: Client, written: str) -> None:
    stale = {"was:/0/connect_timeout": "1s", "field:/0/connect_timeout": "7s"}

    answer = editor.post(EDIT, {"text": TEXT, "revision": "2", **stale, "action": "save"})

    shown = answer.content.decode()
    assert "The text says something else here by now" in shown
    assert 'name="field:/0/connect_timeout" value="7s"' in shown  # nothing typed is lost
    assert text_in(answer) == TEXT
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").revision == 2


def test_row__added_by_its_button__is_in_the_text(editor: Client) -> None:
    shown = page(editor, f"{NEW}?type=endpoint")
    row = re.search(r'name="row" value="(\+[^"]*)">(?:<[^>]*>)*Add an endpoint', shown)
    assert row is not None
    begun = re.search(r'id="text"[^>]*>(.*?)</textarea>', shown, re.DOTALL)
    assert begun is not None

    answer = editor.post(NEW, {"text": html.unescape(begun[1]).removeprefix("\n"), "row": html.unescape(row[1])})

    assert text_in(answer).count("port_value: 8080") == 2


def test_form__text_that_may_hold_secrets__has_none_and_is_in_no_answer(editor: Client) -> None:
    text = TEXT + "transport_socket: {private_key: {inline_string: canary-3b}}\n"
    assert may_hold_secrets(text)

    answer = editor.post(NEW, {"text": text, "action": "fields", **TIMEOUT, "field:/0/connect_timeout": "4s"})
    part = editor.post(NEW, {"text": text, "action": "fields", **TIMEOUT}, headers=PART)

    for each in (answer, part):
        assert "canary-3b" not in each.content.decode()
        assert "has no form" in each.content.decode()


def test_form__text_with_a_word_that_is_no_field_of_secrets__has_one(editor: Client) -> None:
    answer: Any = editor.post(NEW, {"text": TEXT.replace("pay", "users"), "action": "fields"}, headers=PART).json()

    assert 'name="field:/0/connect_timeout"' in answer["fields"]


def test_form__names_and_values_that_are_markup__are_shown_and_not_run(editor: Client) -> None:
    text = TEXT.replace("pay  # mine", repr("<img src=x onerror=alert(1)>")).replace("3s", '"<img src=x>"')

    answer = editor.post(NEW, {"text": text, "action": "fields", f"field:/0/{HOSTILE}": HOSTILE}, headers=PART)

    assert_harmless(answer.json()["fields"])


def test_form__of_each_type__costs_no_more_than_a_page_may(editor: Client, written: str) -> None:
    for address in (EDIT, "/e/default/resource/edit?type=route&name=edge"):
        with CaptureQueriesContext(connection) as queries:
            page(editor, address)
        assert len(queries) <= 25, address
