"""How many pages a person, or an address where nobody is signed in, may ask for (threat 22)."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from controlplane.accounts.browsers import browser_write, cookie_name
from controlplane.console import page_rates
from controlplane.console.page_rates import PersonRate
from controlplane.urls import urlpatterns
from tests.api.conftest import limited
from tests.support.clocks import StandingClock
from tests.web.conftest import USERS
from xdscore.limits import Limits

pytestmark = pytest.mark.django_db

Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Time stands still until a test lets it pass."""
    clock = StandingClock()
    monkeypatch.setattr(page_rates._requests, "clock", clock)
    return clock.passes


@pytest.fixture(autouse=True)
def few(settings: Settings, two_environments: None) -> None:
    limited(settings, page_requests_per_s=2, anonymous_pages_per_s=1, page_burst=3)


def person(name: str) -> Client:
    browser = Client()
    browser.force_login(USERS.objects.create_user(name))
    return browser


def statuses(browser: Client, count: int, path: str = "/account", address: str = "192.0.2.1") -> list[int]:
    return [browser.get(path, REMOTE_ADDR=address).status_code for _ in range(count)]


def test_person__more_pages_than_their_rate__429_that_people_can_read_and_says_when(later: Later) -> None:
    rita, sam = person("rita"), person("sam")
    series = "parley_page_refused_requests_total", {"limit": "page_requests_per_s"}
    before = REGISTRY.get_sample_value(*series) or 0.0

    assert statuses(rita, 4) == [200] * 3 + [429]
    refused: Any = rita.get("/", REMOTE_ADDR="192.0.2.2")  # the person counts, and not where they are

    assert (refused.status_code, refused["Retry-After"], refused["Cache-Control"]) == (429, "1", "no-store")
    assert "<h1>Too many requests</h1>" in refused.content.decode()
    assert "page_requests_per_s" in refused.content.decode()
    assert refused["Content-Type"].startswith("text/html")
    assert REGISTRY.get_sample_value(*series) == before + 2
    assert statuses(sam, 1) == [200]
    later(1)
    assert statuses(rita, 3) == [200] * 2 + [429]


@pytest.mark.parametrize("cookie", ["", "sessionid", "sessionid of nobody"])
@pytest.mark.parametrize("path", ["/login", "/", "/nowhere", "/admin/", "/theme"])
def test_nobody_signed_in__more_than_an_address_may__429(path: str, cookie: str, later: Later) -> None:
    browser = Client()
    if cookie:
        browser.cookies["sessionid"] = cookie

    codes = statuses(browser, 5, path, "2001:db8::1")[2:]
    neighbour = statuses(Client(), 1, path, "2001:db8::2")
    elsewhere = statuses(Client(), 1, path, "2001:db8:0:1::1")

    assert codes[1:] == [429, 429]
    assert codes[0] != 429
    assert neighbour == [429]
    assert elsewhere != [429]


def test_signed_in__while_others_behind_their_address_are_too_many__are_let_through(later: Later) -> None:
    rita = person("rita")
    statuses(Client(), 5, "/login")

    assert statuses(rita, 3) == [200] * 3


def test_sign_in__is_counted_by_address_before_it_waits_for_a_turn(later: Later) -> None:
    browser = person("rita")  # a session changes nothing about that

    codes = [
        browser.post("/login", {"username": "x", "password": "y"}, REMOTE_ADDR="192.0.2.9").status_code
        for _ in range(4)
    ]

    assert 429 not in codes[:3]
    assert codes[3] == 429


def test_other_paths__have_no_rate_here(later: Later, settings: Settings) -> None:
    probes = [f"/{each.pattern}" for each in urlpatterns if "ops" in getattr(each.callback, "__module__", "")]
    browser = Client()

    assert probes == ["/healthz", "/readyz"]
    for path in (*probes, "/api/v1/errors/XDS3029", "/static/console/console.css"):
        assert statuses(browser, 5, path) == [200] * 5, path
    assert statuses(browser, 4, "/static/no-such-file") == [404] * 3 + [429]


@pytest.mark.django_db(transaction=True)
async def test_asynchronous_chain__as_in_the_real_server__has_the_same_rates(later: Later) -> None:
    browser, nobody = AsyncClient(), AsyncClient()
    await browser.aforce_login(await sync_to_async(USERS.objects.create_user)("rita"))

    signed_in = [(await browser.get("/account")).status_code for _ in range(4)]
    anonymous = [(await nobody.get("/login")).status_code for _ in range(4)]

    assert signed_in == [200] * 3 + [429]
    assert anonymous == [200] * 3 + [429]


def test_pages_that_are_open__never_reach_the_rate(later: Later, settings: Settings) -> None:
    """An hour in front of ten open pages of each kind that refreshes itself, at the intervals they say."""
    limited(settings, **{name: getattr(Limits(), name) for name in ("page_requests_per_s", "page_burst")})
    templates = Path(django_settings.BASE_DIR, "templates").rglob("*.html")
    intervals = [
        int(each) for path in templates for each in re.findall(r'hx-trigger="every (\d+)s', path.read_text("utf-8"))
    ]
    chain = PersonRate(lambda _: HttpResponse())
    request = RequestFactory().get("/")
    request.user = User(pk=7)
    asked = 0
    refused = 0

    for second in range(3600):
        for interval in intervals:
            for _ in range(0 if second % interval else 10):  # all at the same moment
                asked += 1
                refused += answered(chain, request) == 429
        later(1)

    assert sorted(intervals) == [2, 2, 3, 4, 5, 10, 10, 60]
    assert (asked // 3600, refused) == (20, 0)


def answered(chain: PersonRate, request: HttpRequest) -> int:
    request.META.pop("parley.page-counted", None)
    answer = chain(request)
    assert not asyncio.iscoroutine(answer)
    return int(answer.status_code)  # type: ignore[union-attr]


def test_browser_that_is_known__while_strangers_at_its_address_are_too_many__signs_in(later: Later) -> None:
    rita = USERS.objects.create_user("rita", password="correct horse battery")
    browser = Client()
    browser.cookies[cookie_name()] = browser_write(rita)
    statuses(Client(), 5, "/login")
    form = {"username": "rita", "password": "correct horse battery"}

    codes = [
        browser.get("/login", REMOTE_ADDR="192.0.2.1").status_code,
        browser.post("/login", form, REMOTE_ADDR="192.0.2.1").status_code,
    ]

    assert codes == [200, 302]


@pytest.mark.parametrize("kept", ["", "x", "WzEsIngiLCJ5Il0:1aaaaa:forged"])
def test_browser_that_says_it_is_known__more_than_an_address_may__429(kept: str, later: Later) -> None:
    browsers = [Client() for _ in range(4)]
    for browser in browsers:
        browser.cookies[cookie_name()] = kept

    assert [statuses(browser, 1, "/login")[0] for browser in browsers] == [200] * 3 + [429]


def test_browser_that_is_known__has_a_rate_of_its_own(later: Later) -> None:
    browser = Client()
    browser.cookies[cookie_name()] = browser_write(USERS.objects.create_user("rita"))

    assert statuses(browser, 4, "/login") == [200] * 3 + [429]
    assert statuses(browser, 1, "/login", "192.0.2.2") == [429]  # wherever it is
    assert statuses(Client(), 1, "/login") == [200]
