"""Route cases in the console: kept, changed, run and deleted; and a form whose write would break one asks first."""

from typing import Any

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change
from controlplane.database.aliases import READER
from controlplane.routecases.models import RouteCase
from tests.services.incidents.fleet import publish
from tests.support.manifests import cluster, listener, route
from tests.web.conftest import HOSTILE, SignIn, page, queries

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

CASES = "/e/default/route-cases"
PAY = {
    "name": "pays",
    "method": "GET",
    "url": "http://shop.example/pay",
    "headers": "X-User: 1\nx-user: 2",
    "answer": "routed",
    "clusters": "pay",
    "blocking": "on",
}


@pytest.fixture
def shop(sign_in: SignIn) -> Client:
    """Somebody who may do everything, and a listener whose routes send everything to the cluster `pay`."""
    publish(listener("edge", "shop", 80), route("shop", "pay"), cluster("pay"), cluster("other"), built=False)
    return sign_in(None, "")


def kept(browser: Client, **more: str) -> RouteCase:
    answer = browser.post(f"{CASES}/new", PAY | more)
    assert answer.status_code == 302, answer.content.decode()
    return RouteCase.objects.latest("pk")


def test_case__kept_by_its_form__stands_in_the_list_with_its_end(shop: Client) -> None:
    assert "No request is kept yet" in page(shop, CASES)

    case = kept(shop)

    assert (case.request["headers"], case.expect) == ({"x-user": "1,2"}, {"answer": "routed", "cluster": "pay"})
    listed = page(shop, CASES)
    assert "pays" in listed
    assert "goes to cluster &#x27;pay&#x27;" in listed
    one = page(shop, f"{CASES}/{case.pk}")
    assert "since it was written" in one
    assert "kept by" in one


def test_case__for_a_client__is_kept_with_its_facts_and_changed_without_losing_any(shop: Client) -> None:
    facts = {
        "identity": "spiffe://a/b",
        "node_id": "edge-1",
        "node_cluster": "edge",
        "metadata": "zone=eu-1\r\n tier = a=b",
    }
    case = kept(shop, **facts, route="shop")

    known = {"identity": "spiffe://a/b", "node_id": "edge-1", "node_cluster": "edge"}
    assert case.client == known | {"metadata": {"zone": "eu-1", "tier": "a=b"}}
    assert case.expect["route"] == "shop"
    RouteCase.objects.update(client={"metadata": {"a=b": " c", "zone": "eu-1"}})
    form = page(shop, f"{CASES}/{case.pk}")
    assert ">a=b= c\nzone=eu-1</textarea>" in form
    again = PAY | {"metadata": "a=b= c\r\nzone=eu-1", "route": "shop", "revision": "1", "note": "same client"}
    assert shop.post(f"{CASES}/{case.pk}", again).status_code == 302
    case.refresh_from_db()
    assert (case.note, case.client) == ("same client", {"metadata": {"a=b": " c", "zone": "eu-1"}})
    assert shop.post(f"{CASES}/{case.pk}", PAY | {"revision": "2"}).status_code == 302
    case.refresh_from_db()
    assert case.client == {}


def test_case__opened_by_a_link__expects_the_end_that_the_request_has(shop: Client) -> None:
    form = page(shop, f"{CASES}/new?authority=shop.example&path=/pay&scheme=http&headers=x-a:%201")

    assert 'value="http://shop.example/pay"' in form
    assert ">pay</textarea>" in form
    assert 'name="virtual_host" maxlength="1024" value="all"' in form


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"url": "shop.example"}, "This must be a URL"),
        ({"url": "http://[x"}, "This must be a URL"),
        ({"headers": "nonsense"}, "Line 1: a header is written as"),
        ({"clusters": "a\nb 10"}, "Of several clusters each has a line"),
        ({"clusters": "a much"}, "is no share in percent"),
        ({"clusters": "a 101"}, "is no share in percent"),
        ({"status": "abc"}, "A status is a number"),
        ({"answer": "redirect"}, "Only with the answer routed."),
        ({"answer": "", "clusters": ""}, "This must say what is expected"),
        ({"name": ""}, "A case needs a name"),
        ({"method": "GE T"}, "This must be a method"),
        ({"metadata": "zone"}, "Line 1: metadata is written as"),
        ({"metadata": "zone=a\nzone=b"}, "Line 2: metadata is written as"),
        ({"metadata": "\n".join(f"k{number}=" for number in range(17))}, "This has 17 keys; at most 16 are allowed."),
        ({"node_id": "n" * 2_049}, "This has at most 2,048 characters"),
    ],
)
def test_case__that_cannot_be__is_told_at_the_field_and_nothing_typed_is_lost(
    shop: Client, more: dict[str, str], said: str
) -> None:
    answer = shop.post(f"{CASES}/new", PAY | {"note": "kept as it was typed"} | more)

    text = answer.content.decode()
    assert answer.status_code == 422
    assert said in text
    assert "kept as it was typed" in text
    assert not RouteCase.objects.exists()


def test_case__of_several_clusters__is_kept_with_their_shares(shop: Client) -> None:
    case = kept(shop, clusters="pay 90\nother 10 ")

    assert case.expect["weighted"] == [{"cluster": "pay", "percent": 90.0}, {"cluster": "other", "percent": 10.0}]
    assert ">pay 90\nother 10</textarea>" in page(shop, f"{CASES}/{case.pk}")


def test_case__changed_meanwhile__is_not_written_over(shop: Client) -> None:
    case = kept(shop)
    path = f"{CASES}/{case.pk}"

    first = shop.post(path, PAY | {"note": "first", "revision": "1"})
    second = shop.post(path, PAY | {"note": "second", "revision": "1"})
    late = shop.post(path, {"action": "delete", "revision": "1"})
    gone = shop.post(path, {"action": "delete", "revision": "2"})

    assert (first.status_code, second.status_code, late.status_code, gone.status_code) == (302, 412, 412, 302)
    assert not RouteCase.objects.exists()


def test_cases__run__say_how_many_fail(shop: Client) -> None:
    kept(shop)
    kept(shop, name="elsewhere", clusters="other")

    said = shop.post(CASES, follow=True).content.decode()

    assert "1 of 2 fail: &#x27;elsewhere&#x27;." in said
    assert "elsewhere" in page(shop, f"{CASES}?state=fails")


def test_write__that_breaks_a_case__asks_and_is_done_for_the_number(shop: Client) -> None:
    kept(shop)
    before = Change.objects.count()
    write: dict[str, Any] = {"action": "save", "message": "move", "text": _text(), "revision": "1"}
    path = "/e/default/resource/edit?type=route&name=shop"

    asked = shop.post(path, write).content.decode()
    wrong = shop.post(path, write | {"accept_cases": "2", "asked_cases": "1"}).content.decode()
    assert Change.objects.count() == before
    done = shop.post(path, write | {"accept_cases": "1", "asked_cases": "1"})

    assert "1 route case would break by this" in asked
    assert "Route case &#x27;pays&#x27; would not hold" in asked
    assert "&#x27;2&#x27; is not the number of cases" in wrong
    assert done.status_code == 302, done.content.decode()
    assert Change.objects.count() == before + 1


def test_cases__by_who_only_looks__are_read_and_not_written(shop: Client, sign_in: SignIn) -> None:
    case = kept(shop)
    viewer = sign_in(Role.VIEWER, "default")

    assert "Keep the case" not in page(viewer, f"{CASES}/{case.pk}")
    assert "New case" not in page(viewer, CASES)
    assert viewer.post(f"{CASES}/{case.pk}", PAY | {"revision": "1"}).status_code == 403
    assert page(viewer, f"{CASES}/{case.pk + 1}", 404)


def test_pages__of_hostile_texts__show_them_and_are_cheap(shop: Client) -> None:
    case = kept(shop, name="<script>alert(1)</script>", note="<img src=x onerror=alert(1)>")

    for path in (CASES, f"{CASES}/{case.pk}"):
        assert "<script>alert(1)" not in page(shop, path)
        assert queries(shop, path) <= 25
    assert shop.post(f"{CASES}/new", PAY | {"name": HOSTILE}).status_code == 422


def _text() -> str:
    return (
        '{"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "shop", "virtual_hosts": '
        '[{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": ""}, "route": {"cluster": "other"}}]}]}'
    )
