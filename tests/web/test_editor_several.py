"""Several resources in one text of the editor: said of each, and stored as one change, all or nothing."""

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import resource_get
from tests.web.conftest import HOSTILE, SignIn, assert_harmless, page
from tests.web.proposals import proposed
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db

PART = {"X-Parley-Part": "1"}
NEW = "/e/default/resources/new"
EDIT = "/e/default/resource/edit?type=cluster&name=pay"
ONE = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: {}\nconnect_timeout: 3s\n'
TWO = f"{ONE.format('one')}---\n{ONE.format('two')}"
WITH_PAY = f"{ONE.format('one')}---\n{ONE.format('pay')}"


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in(Role.EDITOR, "default")


def names() -> set[str]:
    return set(Resource.objects.filter(environment__key="default", type="cluster").values_list("name", flat=True))


def test_check__one_of_two_is_wrong__says_of_which_and_at_which_line(editor: Client) -> None:
    text = TWO.replace("two\nconnect_timeout: 3s", "two\nconnect_timeout: -3s")

    answer = editor.post(NEW, {"text": text, "action": "check"}, headers=PART)

    first, second = re.findall(r"<li><details.*?</details></li>", answer.content.decode(), re.DOTALL)
    assert answer.status_code == 422
    assert "Begins at line 1" in first
    assert "XDS" not in first
    assert 'data-goto="5">Begins at line 5' in second
    assert 'data-line="7"' in second


def test_check__several__shows_what_each_would_do_and_stores_nothing(editor: Client, written: str) -> None:
    listed = "".join(f"- {ONE.format(name)}".replace("\n", "\n  ").removesuffix("  ") for name in ("one", "two"))

    for text in (TWO, listed):
        shown = editor.post(NEW, {"text": text, "action": "check"}).content.decode()
        assert "2 of 2 resources would change" in shown
        assert shown.count("<span>created</span>") == 2
        assert "No connected client loses anything." in shown
    assert names() == {"pay"}


@pytest.mark.parametrize("headers", [{}, PART])
def test_save__several__is_one_change(editor: Client, headers: dict[str, str]) -> None:
    changes = Change.objects.count()

    answer = editor.post(NEW, {"text": TWO, "action": "save", "message": "both"}, headers=headers)

    assert answer.status_code == (201 if headers else 302)
    assert names() == {"one", "two"}
    assert Change.objects.count() == changes + 1
    assert "both" in page(editor, answer["Location"])


def test_save__one_is_wrong__stores_neither(editor: Client) -> None:
    answer = editor.post(NEW, {"text": TWO.replace("3s", "-3s", 1), "action": "save"})

    assert answer.status_code == 422
    assert names() == set()
    assert "connect_timeout: -3s" in answer.content.decode().partition("</textarea>")[0]


@pytest.mark.parametrize("action", ["check", "save", "propose"])
def test_several__one_is_there_already__is_replaced_only_when_chosen(editor: Client, written: str, action: str) -> None:
    refused = editor.post(NEW, {"text": WITH_PAY, "action": action, "set_title": "both"})

    shown = html.unescape(refused.content.decode())
    assert refused.status_code == 409
    assert "There is a cluster 'pay' in 'default' already, at revision r2." in shown
    assert 'name="replace" value="cluster/2/pay">' in shown
    assert names() == {"pay"}
    chosen = editor.post(NEW, {"text": WITH_PAY, "action": action, "set_title": "both", "replace": "cluster/2/pay"})
    assert chosen.status_code == (200 if action == "check" else 302)
    if action == "check":
        assert 'value="cluster/2/pay" checked>' in chosen.content.decode()
    assert names() == ({"one", "pay"} if action == "save" else {"pay"})


def test_several__chosen_one_was_written_meanwhile__is_asked_again(editor: Client, written: str) -> None:
    answer = editor.post(NEW, {"text": WITH_PAY, "action": "save", "replace": "cluster/1/pay"})

    assert answer.status_code == 409
    assert 'value="cluster/2/pay">' in answer.content.decode()
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").revision == 2


def test_edit__with_another_resource_in_the_text__writes_both(editor: Client, written: str) -> None:
    stale = editor.post(EDIT, {"text": WITH_PAY, "revision": "1", "action": "save"})
    assert stale.status_code == 412
    assert names() == {"pay"}

    assert editor.post(EDIT, {"text": WITH_PAY, "revision": "2", "action": "save"}).status_code == 302
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").revision == 3
    assert names() == {"one", "pay"}


def test_edit__text_of_several_without_the_edited_one__says_so(editor: Client, written: str) -> None:
    answer = editor.post(EDIT, {"text": TWO, "revision": "2", "action": "save"})

    assert answer.status_code == 422
    assert "None of the 2 resources in the text is the cluster" in answer.content.decode()


def test_change_set__several_in_the_text__are_put_into_the_set(editor: Client, written: str) -> None:
    one = proposed("mine")
    text = f"{ONE.format('mine')}---\n{ONE.format('two')}"

    answer = editor.post(
        f"/change-sets/{one}/resource?type=cluster&name=mine",
        {"text": text, "revision": "0", "version": "1", "action": "save"},
    )

    assert answer.status_code == 302, answer.content.decode()
    shown = page(editor, answer["Location"])
    assert "mine" in shown
    assert "two" in shown


def test_several__one_of_them_twice__is_refused(editor: Client) -> None:
    answer = editor.post(NEW, {"text": TWO.replace("two", "one"), "action": "save"})

    assert answer.status_code == 422
    assert names() == set()


def test_several__too_many__are_led_to_the_import(editor: Client) -> None:
    text = "---\n".join(ONE.format(f"c{number}") for number in range(101))

    answer = editor.post(NEW, {"text": text, "action": "check"})

    assert answer.status_code == 422
    assert "the editor takes 100. Import more at once." in answer.content.decode()


def test_several__names_that_are_markup__are_shown_and_not_run(editor: Client) -> None:
    answer = editor.post(NEW, {"text": TWO.replace("name: two", f'name: "{HOSTILE}"'), "action": "check"}, headers=PART)

    assert_harmless(answer.content.decode())


def test_several__fifty__cost_no_more_queries_than_two(editor: Client) -> None:
    counts = []
    for count in (2, 2, 50):
        text = "---\n".join(ONE.format(f"c{number}") for number in range(count))
        with CaptureQueriesContext(connection) as queries:
            editor.post(NEW, {"text": text, "action": "check"}, headers=PART)
        counts.append(len(queries))

    assert counts[2] <= counts[1] <= 25, counts
