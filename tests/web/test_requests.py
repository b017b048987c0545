"""The page that says where a request goes: by its form, by a link and by a pasted line, for whoever may know."""

import html
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import Fleet, publish
from tests.support.manifests import Tree, cluster, endpoints, listener
from tests.web.conftest import HOSTILE, assert_harmless, page, queries
from xdscore.resource_types import LISTENER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
PAGE = "/e/default/request"
PAY = {"scheme": "http", "method": "GET", "authority": "shop.example", "path": "/pay"}
MISSED = PAY | {"path": "/basket"}
LINE = '[2026-01-31T02:10:00.310Z] "GET /basket HTTP/1.1" 404 NR 0 0 0 - "-" "curl/8.5" "id-1" "shop.example" "-"'
SECRET = "s3cr3t-0123456789-abcdef"


def shop(*routes: dict[str, object], host: str = "shop") -> Tree:
    return {
        "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "name": "shop",
        "virtual_hosts": [{"name": host, "domains": ["shop.example"], "routes": list(routes)}],
    }


def to(name: str, **match: object) -> dict[str, object]:
    return {"match": match, "route": {"cluster": name}}


CANARY = to("canary", prefix="/pay", headers=[{"name": "x-canary", "string_match": {"exact": "1"}}])


@pytest.fixture
def published(two_environments: None) -> None:
    """A listener whose routes lead to two clusters, by a header."""
    publish(
        *(listener("edge", "shop", 8080), shop(CANARY, to("pay", prefix="/pay"))),
        *(cluster("pay", eds=True), cluster("canary", eds=True)),
        *(endpoints("pay", 9000, 9001), endpoints("canary", 9002)),
    )


def asked(browser: Client, status: int = 200, /, **fields: str) -> str:
    """The page that answers the form."""
    answer = browser.post(PAGE, fields)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def copied(shown: str, label: str) -> str:
    """What a button copies."""
    found = re.search(rf'data-copy="([^"]*)"[^>]*><svg[^>]*><use[^>]*></use></svg><span>{label}</span>', shown)
    assert found is not None, label
    return html.unescape(found[1])


def test_page__nothing_asked__is_the_form_with_the_listeners(admin: Client, published: None) -> None:
    shown = page(admin, PAGE)

    assert "Where does this request go?" in shown
    assert '<option value="edge">' in shown
    assert 'class="ladder"' not in shown


def test_form__a_request__is_answered_first_then_drawn_then_told_choice_by_choice(
    admin: Client, published: None
) -> None:
    shown = asked(admin, **PAY)

    places = [shown.index(each) for each in ("It goes to cluster pay", 'class="way"', 'class="ladder"')]
    assert places == sorted(places)
    assert shown.count('class="station station-pass"') == 7
    assert "Route 1 of virtual host &#x27;shop&#x27; takes it." in shown
    assert "wants the header &#x27;x-canary&#x27;" in shown
    assert "127.0.0.1:9001" in shown
    assert 'at=%2Fvirtual_hosts%2F0%2Froutes%2F1%2Fmatch#at">See it in the manifest' in shown


def test_form__headers__decide_too(admin: Client, published: None) -> None:
    assert "It goes to cluster canary" in asked(admin, **PAY, headers="X-Canary: 1\n\naccept: */*")


def test_form__nothing_takes_it__says_404_and_leads_to_the_line_of_the_manifest(admin: Client, published: None) -> None:
    shown = asked(admin, **MISSED)

    assert "404: nothing takes it" in shown
    assert shown.count('class="station station-unreached"') == 2
    [link] = re.findall(r'<p><a class="foreign" href="([^"]*)">See it in the manifest</a>', shown)
    assert "route shop /virtual_hosts/0/routes, line 7<" in shown
    manifest = page(admin, html.unescape(link))
    assert "<span>line 7 " in manifest
    [marked] = re.findall(r'<mark id="at"[^>]*>(.*?)</mark>', manifest)
    assert marked == "  routes:"
    assert '<code class="pointer">/virtual_hosts/0/routes</code>' in manifest
    # Why each of them lost leads to its own line.
    lost = re.findall(r'<li class="foreign"><a href="([^"]*)">', shown)
    prefix = page(admin, html.unescape(lost[1]))
    assert re.findall(r'<mark id="at"[^>]*>(.*?)</mark>', prefix) == ["      prefix: /pay"]
    assert 'wants a path that begins with &#x27;/pay&#x27; <span class="quiet">line 17</span>' in shown


@pytest.mark.parametrize("pointer", ["", "x", "/", "/virtual_hosts/99/x", "/" + "a/" * 5_000, "/%00", "/~9"])
def test_manifest__with_a_pointer_to_nowhere__is_shown_all_the_same(
    admin: Client, published: None, pointer: str
) -> None:
    answer = admin.get("/e/default/resource", {"type": "route", "name": "shop", "at": pointer})

    assert answer.status_code == 200
    assert "virtual_hosts:" in answer.content.decode()


def test_url__in_place_of_the_host__is_taken_apart(admin: Client, published: None) -> None:
    shown = asked(admin, authority="https://shop.example/pay?n=1")

    assert "It goes to cluster pay" in shown
    assert 'name="path" value="/pay?n=1"' in shown
    assert "<option selected>https</option>" in shown


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"path": "pay"}, "Path: This must begin with"),
        ({"authority": "a b"}, "Host: This must be a host"),
        ({"method": "G T"}, "Method: This must be a method"),
        ({"scheme": "ftp"}, "Scheme: This is http or https."),
        ({"headers": "x-a: 1\nnonsense"}, "Headers: Line 2: A header is written as"),
        ({"headers": ":path: /"}, "Headers: Line 1: "),
        ({"headers": "x: 1\n" * 101}, "Headers: A request has at most 100 headers"),
        ({"at": "0"}, "Epoch: An epoch is the number of a snapshot"),
        ({"at": "٣"}, "Epoch: An epoch is the number of a snapshot"),
        ({"client": "a\x00b"}, "Client: This has at most"),
        ({"listener": "x" * 1_025}, "Listener: This has at most 1,024 characters"),
        ({"authority": "http://[x"}, "Host: This must be a host"),
    ],
)
def test_form__what_no_request_is__is_said_and_what_was_typed_stays(
    admin: Client, published: None, fields: dict[str, str], said: str
) -> None:
    shown = html.unescape(asked(admin, 422, **PAY | {"headers": "x-kept: 1"} | fields))

    assert said in shown
    assert "shop.example" in shown or "authority" in fields
    assert "x-kept: 1" in shown or "headers" in fields


def test_form__several_faults__are_told_at_once(admin: Client, published: None) -> None:
    shown = asked(admin, 422, authority="a b", path="pay", method="G T", scheme="http", at="x")

    assert shown.count('class="field-error"') == 4


@pytest.mark.parametrize(("field", "value"), [("client", "nobody"), ("at", "99")])
def test_form__a_client_or_an_epoch_that_there_is_not__says_so(
    admin: Client, published: None, field: str, value: str
) -> None:
    shown = asked(admin, 404, **PAY, **{field: value})

    assert "There is a problem" in shown
    assert 'value="shop.example"' in shown


def test_form__an_earlier_epoch__is_the_answer_of_then(admin: Client, published: None) -> None:
    before = SnapshotRow.objects.latest("epoch").epoch
    publish(shop(to("canary", prefix="/")))

    assert "It goes to cluster canary" in asked(admin, **PAY)
    assert "It goes to cluster pay" in asked(admin, **PAY, at=str(before))


def test_answer__can_be_kept_as_a_route_case__with_its_end_and_without_what_looks_like_a_secret(
    admin: Client, published: None
) -> None:
    shown = asked(admin, authority="shop.example", path="/pay", headers="authorization: Bearer abc\nx-a: 1")

    [link] = re.findall(r'href="([^"]*/route-cases/new[^"]*)"', shown)
    form = page(admin, html.unescape(link))

    assert 'value="http://shop.example/pay"' in form
    assert "x-a: 1" in form
    assert "Bearer" not in html.unescape(link) + form
    assert ">pay</textarea>" in form


def test_link__asks_the_same_without_what_looks_like_a_secret_and_says_so(admin: Client, published: None) -> None:
    headers = f"x-canary: 1\nauthorization: Bearer {SECRET}\ncookie: a={SECRET}"
    shown = asked(admin, **PAY | {"path": f"/pay?n=1&token={SECRET}"}, headers=headers)

    link = copied(shown, "Copy link")
    assert admin.post(PAGE, {**PAY, "headers": headers}).headers["Cache-Control"] == "no-store"
    assert admin.post(PAGE, PAY).headers["Cache-Control"] == "private, no-cache"
    given = parse_qs(urlsplit(link).query)
    for each in (link, copied(shown, "Copy for xdsctl"), copied(shown, "Copy as curl")):
        assert SECRET not in each
        assert "x-canary" in each
    answer, _, form = shown.partition('class="request-forms"')
    assert SECRET not in answer.partition('class="way"')[2]
    assert SECRET in form
    assert given["path"] == ["/pay?n=1"]
    assert "Links and commands below leave out what looks like a secret" in shown
    for name in ("authorization", "cookie", "?token"):
        assert f'<b class="foreign">{name}</b>' in shown

    shared = page(admin, link.partition("//")[2].partition("/")[2].join(("/", "")))
    assert "It goes to cluster canary" in shared
    assert "Whoever made this link left out what looks like a secret" in shared


def test_commands__are_quoted_for_a_shell(admin: Client, published: None) -> None:
    shown = asked(admin, **PAY | {"path": "/pay?q='$(id)'"}, headers="x-a: `id`; '\"")

    assert copied(shown, "Copy for xdsctl") == (
        "xdsctl -e default explain request 'http://shop.example/pay?q='\"'\"'$(id)'\"'\"'' -H 'x-a: `id`; '\"'\"'\"'"
    )


def test_line__of_a_log__is_answered_beside_what_the_proxy_said(admin: Client, published: None) -> None:
    shown = asked(admin, line=LINE, paste="1", client="")

    assert "404: nothing takes it" in shown
    assert "The proxy logged NR: no route, or no filter chain. So do we say." in shown
    assert 'name="path" value="/basket"' in shown
    assert "user-agent: curl/8.5" in shown
    assert "which client wrote it, so that the answer goes by what is published" in shown


def test_line__when_what_is_published_is_another_by_now__says_that_they_differ(admin: Client, published: None) -> None:
    publish(shop(to("pay", prefix="/")))

    shown = asked(admin, line=LINE, paste="1")

    assert "Here it goes to cluster &#x27;pay&#x27;. The configuration changed since" in shown


def test_line__and_then_a_header__still_compares_and_another_request_does_not(admin: Client, published: None) -> None:
    again = asked(admin, **MISSED, line=LINE, headers="x-canary: 1")
    other = asked(admin, **PAY, line=LINE)

    assert "What the proxy logged" in again
    assert "What the proxy logged" not in other


def test_line__that_is_none__says_what_would_be_one_and_keeps_it(admin: Client, published: None) -> None:
    shown = asked(admin, 422, line=f"what is this? {HOSTILE}", paste="1")

    assert "This is no line of an access log that is known here." in shown
    assert "what is this?" in shown
    assert "<img src=x" not in shown


def test_line__with_a_host_that_no_request_has__says_so_in_the_form(admin: Client, published: None) -> None:
    shown = asked(admin, 422, line=LINE.replace('"shop.example"', '"-"'), paste="1")

    assert 'id="authority-wrong"' in shown
    assert 'name="path" value="/basket"' in shown


def test_answer__of_hostile_names__acts_nowhere(admin: Client, published: None) -> None:
    name = HOSTILE.replace("\x1b", "")
    publish(shop({"match": {"prefix": f"/{name}"}, "route": {"cluster": "pay"}}, host=name))

    shown = asked(admin, **PAY)

    assert "404: nothing takes it" in shown
    assert_harmless(shown)


def test_page__of_a_client_and_of_what_routes__lead_to_it_filled_in(admin: Client, published: None) -> None:
    fleet = Fleet(1, kind=LISTENER)
    fleet.write()
    client = page(admin, "/x?e=default&t=cluster&n=pay&c=node-1")
    [client_id] = set(re.findall(r'href="/clients/([^"/?]+)"', client))

    for path, link in (
        (f"/clients/{client_id}", f"{PAGE}?client={client_id}"),
        ("/e/default/resource?type=listener&name=edge", f"{PAGE}?listener=edge"),
        ("/e/default/resource?type=route&name=shop", PAGE),
        ("/x", PAGE),
    ):
        assert f'href="{link}"' in page(admin, path).partition("<main")[2], path
    assert f'id="request-client" name="client" value="{client_id}"' in page(admin, f"{PAGE}?client={client_id}")


def test_page__by_somebody_of_another_environment__tells_nothing(
    person: Callable[..., Client], published: None
) -> None:
    Fleet(1, kind=LISTENER)
    there, viewer = person(Role.VIEWER, "prod"), person(Role.VIEWER)

    assert there.post(PAGE, PAY).status_code == 404
    foreign = there.post("/e/prod/request", PAY | {"client": "node-1"})
    assert foreign.status_code == 404
    assert "never saw a client &#x27;node-1&#x27;" in foreign.content.decode()
    assert "It goes to cluster pay" in asked(viewer, **PAY)


@pytest.mark.parametrize("path", ["/pay", "/basket"])
def test_page__any_question__asks_the_database_a_bounded_number_of_times(
    admin: Client, published: None, path: str
) -> None:
    assert queries(admin, f"{PAGE}?authority=shop.example&path={path}") <= 25
