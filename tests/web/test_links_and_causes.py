"""What leads from one thing to the next: trees of links, the changes of a snapshot, the incidents of a resource."""

from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.builder.models import HeldResource
from controlplane.catalog.link_trees import Branch, users_tree, uses_tree
from controlplane.catalog.models import Environment
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet, publish
from tests.support.manifests import cluster, listener, route
from tests.web.conftest import SignIn, page
from xdscore.resource_types import CLUSTER, LISTENER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def shape(branches: tuple[Branch, ...]) -> list[object]:
    return [(each.link.name if each.link.present else f"no {each.link.name}", *shape(each.below)) for each in branches]


@pytest.fixture
def shop(environments: None) -> None:
    """Two listeners with one route, whose cluster lacks its endpoints."""
    publish(listener("a", "edge", 1), listener("b", "edge", 2), route("edge", "pay"), cluster("pay", eds=True))


def test_tree__listener__leads_to_what_is_missing_four_levels_below(shop: None) -> None:
    tree = uses_tree(environment_key="default", kind=LISTENER, name="a")

    assert shape(tree) == [("edge", ("pay", ("no pay",)))]


def test_tree__upwards__leads_to_every_listener(shop: None) -> None:
    tree = users_tree(environment_key="default", kind=CLUSTER, name="pay")

    assert shape(tree) == [("edge", ("a",), ("b",))]


def test_tree__pages__show_it_and_the_editor_says_what_a_text_needs(shop: None, sign_in: SignIn) -> None:
    editor = sign_in(Role.EDITOR, "default")
    text = (
        "'@type': type.googleapis.com/envoy.config.route.v3.RouteConfiguration\nname: edge\n"
        "virtual_hosts: [{name: a, domains: ['*'], routes: [{match: {prefix: ''}, route: {cluster: ledger}}]}]\n"
    )

    shown = page(editor, "/e/default/resource?type=listener&name=a&tab=links")
    checked = editor.post(
        "/e/default/resource/edit?type=route&name=edge", {"text": text, "action": "check"}, headers={"HX-Request": "1"}
    ).content.decode()

    assert shown.count('<ul class="tree">') == 3
    assert "not there" in shown
    needs = checked.partition("What it needs")[2]
    assert "ledger" in needs.partition("What needs it")[0]
    assert "not there" in needs.partition("What needs it")[0]
    assert "name=b" in needs.partition("What needs it")[2]


def test_snapshot__made_for_two_changes__names_them_and_builds_say_what_waits(shop: None, sign_in: SignIn) -> None:
    publish(cluster("one"), built=False)
    viewer = sign_in(Role.VIEWER, "default")
    waiting = page(viewer, "/e/default/builds")
    publish(cluster("two"))
    epoch = Environment.objects.get(key="default").epoch

    line = page(viewer, "/e/default/snapshots").partition("<tbody>")[2].partition("</tr>")[0]

    assert "1 change waits for a build" in waiting
    assert line.count('href="/changes/') == 2
    assert page(viewer, f"/e/default/snapshots/{epoch}").count('href="/changes/') == 2


def test_resource__that_was_refused__has_its_incidents_and_explain_the_way_back(
    person: Callable[..., Client], fleet: Fleet
) -> None:
    viewer = person(Role.VIEWER)

    tab = page(viewer, "/e/default/resource?type=cluster&name=pay&tab=incidents")
    why = page(viewer, "/x?e=default&t=cluster&n=pay&c=node-1")
    well = page(viewer, "/x?e=default&t=cluster&n=pay&c=node-2")

    assert "1 of 3 clients refused it" in tab
    assert "No client ever refused it" not in tab
    assert "The change, and the way back" in why
    assert "The change, and the way back" not in well


def test_code__of_a_finding__lists_what_is_held_because_of_it_and_only_where_one_may_look(sign_in: SignIn) -> None:
    publish(route("edge", "lost-one"), listener("front", "nothing", 1))
    code = HeldResource.objects.exclude(findings=[]).first()
    assert code is not None
    word = code.findings[0]["code"]

    shown = page(sign_in(None, "default"), f"/codes/{word}")
    withheld = page(sign_in(None, "default"), "/codes/XDS2106")
    elsewhere = page(sign_in(Role.VIEWER, "prod"), f"/codes/{word}")
    other = page(sign_in(None, "default"), "/codes/XDS1002")

    assert "not served as written because of it" in shown
    assert f"name={code.name}" in shown
    assert ">stalled<" in withheld
    assert "nothing is served" in withheld
    for nothing in (elsewhere, other):
        assert "name=edge" not in nothing
        assert "names it now" in nothing
