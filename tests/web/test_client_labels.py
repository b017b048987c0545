"""Labels on clients: choosing in the list, the question, the page of one client, and who may."""

import html
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone

from controlplane.accounts.principal import Role
from controlplane.clients.models import Client, ClientLabels
from controlplane.console.clients import ClientsPage
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet
from tests.web.conftest import HOSTILE, assert_harmless, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

LIST = "/e/default/clients"
BULK = f"{LIST}/bulk"
ACT = {"act": "labels"}
Person = Callable[..., Browser]


@pytest.fixture
def ids(fleet: Fleet) -> Mapping[str, str]:
    return dict(Client.objects.values_list("node_id", "pk"))


def sent(browser: Browser, status: int = 200, **form: Any) -> str:
    answer = browser.post(BULK, {**ACT, **form})
    assert answer.status_code == status, answer.content
    return html.unescape(" ".join(answer.content.decode().split()))


def labels() -> Mapping[str, str]:
    return dict(ClientLabels.objects.values_list("client__node_id", "labels"))


def test_list__of_an_operator__has_a_box_for_each_and_of_others_none(person: Person, ids: Mapping[str, str]) -> None:
    operator, editor = person(Role.OPERATOR), person(Role.EDITOR)

    assert f'name="pick" value="{ids["node-1"]}"' in page(operator, LIST)
    assert "Set labels" not in page(editor, LIST)
    sent(editor, 403, pick=ids["node-1"], labels="a=1", sure="1")


def test_labels__of_those_ticked__are_asked_about_set_and_filtered_by(admin: Browser, ids: Mapping[str, str]) -> None:
    asked = sent(admin, pick=[ids["node-1"], ids["node-2"]])
    assert labels() == {}
    done = admin.post(BULK, {**ACT, "chosen": f"{ids['node-1']} {ids['node-2']}", "labels": "team=pay", "sure": "1"})

    assert "2 clients" in asked
    assert done["Location"] == LIST
    assert labels() == {"node-1": "\nteam=pay\n", "node-2": "\nteam=pay\n"}
    shown = page(admin, f"{LIST}?label=team%3Dpay")
    assert [each in shown for each in ids.values()] == [True, True, False]
    assert '<span class="label">team=pay</span>' in shown
    assert "Nothing is listed until it is right." in admin.get(f"{LIST}?label=a in (b)").content.decode()
    rows = admin.get(f"{LIST}?label=team&file=json").json()
    assert {each["node_id"]: each["labels"] for each in rows} == {"node-1": "team=pay", "node-2": "team=pay"}


NARROW: dict[str, Callable[[Mapping[str, str]], str]] = {
    "q": lambda _: "node-2",
    "state": lambda _: "refusing",
    "family": lambda _: "grpc-go",
    "label": lambda _: "team=pay",
    "since": lambda _: (timezone.now() + timedelta(days=1)).isoformat(),
    "until": lambda _: "2000-01-01",
    "change": lambda _: "9bd2ab86-0001-4cc9-9a0c-000000000000",
    "answer": lambda _: "acked",
}


def test_labels__of_all_that_fit__reach_what_the_list_shows_by_every_filter(
    admin: Browser, ids: Mapping[str, str]
) -> None:
    sent(admin, 302, pick=ids["node-3"], labels="team=pay", sure="1")
    assert NARROW.keys() == {each.name for each in ClientsPage.frame.filters}

    for name, value in NARROW.items():
        narrow = {name: value(ids)}
        listed = admin.get(LIST, narrow).content.decode()
        answer = admin.post(BULK, {**ACT, "all": "1", **{f"f_{key}": given for key, given in narrow.items()}})
        chosen = answer.content.decode().partition('name="chosen" value="')[2].partition('"')[0].split()
        assert set(chosen) == {each for each in ids.values() if f'href="/clients/{each}"' in listed}, name


def test_labels__typed_wrong_or_of_nobody__are_told_with_what_was_typed(admin: Browser, ids: Mapping[str, str]) -> None:
    wrong = sent(admin, 422, pick=ids["node-1"], labels="-a=x team", sure="1")
    nobody = sent(admin, 404, pick="nobody", labels="a=1", sure="1")
    sent(admin, 422, labels="a=1", sure="1")
    sent(admin, 422, all="1", f_since="the other day", labels="a=1", sure="1")

    assert "'team' is no label: write key=value, or key- to remove one." in wrong
    assert 'value="-a=x team"' in wrong
    assert "There is no client 'nobody' in 'default'." in nobody
    assert labels() == {}


def test_client__labels_are_shown_and_set_on_its_page(admin: Browser, person: Person, ids: Mapping[str, str]) -> None:
    one = f"/clients/{ids['node-1']}"
    form = {**ACT, "pick": ids["node-1"], "at": ids["node-1"], "labels": "team=pay", "sure": "1"}

    assert admin.post(BULK, form)["Location"] == one
    shown = page(admin, one)
    assert '<span class="label">team=pay</span>' in shown
    assert "Set labels" in shown
    assert "Set labels" not in page(person(Role.VIEWER), one)


def test_bulk__hostile_words__stay_text(admin: Browser, ids: Mapping[str, str]) -> None:
    for field in ("pick", "chosen", "labels", "at", "f_q"):
        form = {**ACT, "pick": ids["node-1"], "at": ids["node-1"], field: HOSTILE}
        assert_harmless(admin.post(BULK, form).content.decode())
