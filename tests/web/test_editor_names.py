"""Names that a text in the editor can refer to: suggested and listed, within what its writer may read."""

import html
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import EVERYTHING, Allowed, Role
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.common.limits import Limit
from controlplane.console.naming import Naming
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, HOSTILE, SignIn, assert_harmless, page
from tests.web.proposals import proposed
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db

PART = {"X-Parley-Part": "1"}
NEW = "/e/default/resources/new"
ROUTE = '"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\nname: new\n'
TO = ROUTE + "virtual_hosts:\n- name: a\n  routes:\n  - match: {prefix: /}\n    route:\n      cluster: "
MINE = '\n---\n"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: mine\n'


def stored(*names: str, environment: str = "default") -> None:
    change_apply(environment_key=environment, edits=[Put(parsed(cluster(name))) for name in names], actor=DANA)


def suggested(browser: Client, typed: str = "", after: str = "", at: str = NEW) -> list[str]:
    answer: Any = browser.post(at, {"action": "complete", "before": TO + typed, "after": after}).json()
    return [each["label"] for each in answer["options"]]


def test_complete__reference__suggests_what_is_there_and_what_the_text_itself_has(sign_in: SignIn) -> None:
    stored("pay", "repay", "refund")
    stored("pay-elsewhere", environment="prod")
    editor = sign_in(Role.EDITOR, "default")

    assert suggested(editor, "", MINE) == ["mine", "pay", "refund", "repay"]
    assert suggested(editor, "PAY", MINE) == ["pay", "repay"]


def test_names__reader_of_some_resources__is_told_of_no_others(environments: None) -> None:
    stored("pay", "pay-2", "refund")
    some = Naming("default", Allowed(((Limit(types=("cluster",), names=("pay*",)),),)), "")

    assert list(some.names_of(CLUSTER, "")) == ["pay", "pay-2"]
    assert [(each.kind, list(each.names)) for each in some.listed("")] == [(CLUSTER, ["pay", "pay-2"])]
    assert not some.listed("refund")
    assert not Naming("default", Allowed(()), "").listed("")


def test_complete__somebody_of_another_environment__is_told_nothing(sign_in: SignIn, written: str) -> None:
    answer = sign_in(Role.EDITOR, "prod").post(NEW, {"action": "complete", "before": TO})

    assert answer.status_code == 404
    assert "pay" not in answer.content.decode()


def test_names__of_many_resources__take_one_query_for_each_question(environments: None) -> None:
    stored(*(f"service-{number}" for number in range(60)))
    everything = Naming("default", EVERYTHING, "")

    with CaptureQueriesContext(connection) as queries:
        names = everything.names_of(CLUSTER, "SERVICE-1")
        listed = everything.listed("")

    assert list(names)[:2] == ["service-1", "service-10"]
    assert (len(listed[0].names), listed[0].more) == (50, True)
    assert len(queries) == 6


def test_complete__in_a_change_set__knows_what_else_the_set_writes(sign_in: SignIn) -> None:
    browser = sign_in(Role.EDITOR, "default")
    one = proposed("mine")
    at = f"/change-sets/{one}/resource?type=cluster&name=mine"

    assert suggested(browser, at=at) == ["mine"]


def test_names__without_scripts__are_listed_beside_the_text_which_stays(sign_in: SignIn, written: str) -> None:
    browser = sign_in(Role.EDITOR, "default")

    answer = browser.post(NEW, {"action": "names", "text": TO + MINE, "named": "", "message": "why"})
    found = browser.post(NEW, {"action": "names", "text": TO + MINE, "named": "dge"}).content.decode()
    nothing = html.unescape(browser.post(NEW, {"action": "names", "text": "", "named": "no <b>"}).content.decode())

    shown = answer.content.decode()
    assert answer.status_code == 200
    assert all(f'data-name="{name}"' in shown for name in ("pay", "edge", "mine"))
    assert "name: mine" in shown.partition("</textarea>")[0]
    assert 'value="why"' in shown
    assert 'data-name="edge"' in found
    assert 'data-name="pay"' not in found
    assert "No resource that you may see has “no <b>” in its name." in nothing


def test_names__that_are_markup__are_shown_and_not_run(sign_in: SignIn) -> None:
    text = MINE.replace("mine", f"'{HOSTILE}'")

    answer = sign_in(Role.EDITOR, "default").post(NEW, {"action": "names", "text": text}, headers=PART)

    assert_harmless(answer.content.decode())


def test_editor__page__says_that_names_can_be_listed(sign_in: SignIn) -> None:
    assert "Names you can refer to" in page(sign_in(Role.EDITOR, "default"), NEW)
