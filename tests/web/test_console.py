"""The pages: only for whoever signed in, and true."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Delete, Put
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.build import BUILD_VERSION
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)


@pytest.fixture
def browser() -> Client:
    environment_default_ensure()
    get_user_model().objects.create_superuser("admin", password="correct horse battery")
    client = Client()
    assert client.login(username="admin", password="correct horse battery")
    return client


@pytest.mark.parametrize("path", ["/", "/x?e=default&t=cluster&n=pay"])
def test_page__nobody_signed_in__leads_to_the_sign_in_and_back(path: str) -> None:
    answer = Client().get(path)

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login?next=/")


def test_login__wrong_password__says_so_and_keeps_the_way_back() -> None:
    answer = Client().post("/login", {"username": "admin", "password": "wrong", "next": "/x?n=pay"})

    page = answer.content.decode()
    assert "There is a problem" in page
    assert 'value="/x?n=pay"' in page


def test_page__somebody_signed_in__says_at_its_foot_which_version_this_is(browser: Client) -> None:
    foot = f'<footer class="page-foot">Parley {BUILD_VERSION} '

    assert foot in browser.get("/").content.decode()
    assert BUILD_VERSION not in Client().get("/login").content.decode()


def test_home__environment_with_resources__shows_what_is_served(browser: Client) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA)
    before = browser.get("/").content.decode()
    builds_sweep()

    after = browser.get("/").content.decode()

    assert "1 resource waits to be published." in before
    assert "all published" not in before
    assert "all published" in after
    assert "last changes" in after.lower()


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("pay", 200, "Cluster &#x27;pay&#x27; is served in &#x27;default&#x27;"),
        ("gone", 200, "Cluster &#x27;gone&#x27; was removed from &#x27;default&#x27; by dana"),
        ("payd", 200, "Nobody has published Cluster &#x27;payd&#x27; in &#x27;default&#x27;. Closest: &#x27;pay&#x27;"),
        ("*", 404, "which means every resource"),
    ],
)
def test_explain__name__is_answered_as_the_stream_would(browser: Client, name: str, status: int, says: str) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster(each))) for each in ("pay", "gone")], actor=DANA)
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "gone")], actor=DANA)
    builds_sweep()

    answer = browser.get("/x", {"e": "default", "t": "cluster", "n": name})

    assert answer.status_code == status
    assert says in answer.content.decode()


@pytest.mark.parametrize(("environment", "word"), [("nowhere", "cluster"), ("default", "spaceship")])
def test_explain__unknown_environment_or_type__says_which(browser: Client, environment: str, word: str) -> None:
    answer = browser.get("/x", {"e": environment, "t": word, "n": "pay"})

    assert answer.status_code == 404
    assert (environment if environment == "nowhere" else word) in answer.content.decode()


def test_explain__name_that_is_markup__is_shown_and_not_run(browser: Client) -> None:
    page = browser.get("/x", {"e": "default", "t": "cluster", "n": "<img src=x onerror=alert(1)>"}).content.decode()

    assert "<img src=x" not in page
    assert "&lt;img" in page


def test_explain__signed_in_without_rights__learns_nothing(browser: Client) -> None:
    get_user_model().objects.create_user("guest", password="correct horse battery")
    guest = Client()
    guest.login(username="guest", password="correct horse battery")

    answer = guest.get("/x", {"e": "default", "t": "cluster", "n": "pay"})

    assert answer.status_code == 404
    assert "There is no environment" in answer.content.decode()
