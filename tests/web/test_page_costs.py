"""What pages ask of the database: no more for more data, by the table of pages that the benchmark measures, too."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from bench import console_fleet
from bench.console_pages import QUESTIONS, WITHOUT_DATA, addresses, pages, subject_now
from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.console.urls import urlpatterns
from controlplane.database.aliases import READER
from tests.web.conftest import USERS

# No page may ask more, beside what a process asks once and remembers.
MAX_QUERIES = 25


def grow(*, resources: int, changes: int, clients: int, incidents: int, people: range) -> None:
    console_fleet.rollouts_end()
    console_fleet.resources_write(resources=resources, changes=changes)
    console_fleet.clients_report(clients=clients, resources=resources)
    console_fleet.incidents_make(incidents=incidents, clients=clients)
    console_fleet.people_act(count=len(people), first=people.start)
    console_fleet.channels_tell(channels=len(people), messages=changes * 10, first=people.start)
    console_fleet.route_cases_keep(count=len(people), first=people.start)
    console_fleet.rollout_begin(resources=resources // 20)
    console_fleet.change_sets_make(count=incidents, resources=resources // 6)


def cost(browser: Client, address: str) -> int:
    """The queries of a page, with what pages share for an interval."""
    cache.clear()
    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(address)
        b"".join(answer)
    assert answer.status_code == 200, address
    return len(queries)


def twice(browser: Client, address: str) -> int:
    """The same without what a process asks once and remembers."""
    cost(browser, address)
    return cost(browser, address)


def test_pages__each_path_of_the_console__is_asked_for() -> None:
    names = {each.name for each in urlpatterns}

    assert names == pages().keys() | WITHOUT_DATA
    assert names >= QUESTIONS.keys()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True, databases=["default", READER])
def test_pages__three_times_as_much_of_everything__ask_as_often(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    USERS.objects.create_superuser("admin", password="pw")
    browser = Client()
    browser.force_login(USERS.objects.get())

    grow(resources=60, changes=2, clients=8, incidents=4, people=range(3))
    few = {page: twice(browser, address) for page, address in addresses(subject_now())}
    for number in range(3):
        environment_create(key=f"more-{number}", policy=EnvironmentPolicy(), actor=SYSTEM)
    grow(resources=180, changes=4, clients=24, incidents=12, people=range(3, 9))
    many = {page: cost(browser, address) for page, address in addresses(subject_now())}
    more = {
        page: twice(browser, address)
        for page, address in addresses(subject_now())
        if many[page] > min(few[page], MAX_QUERIES)
    }

    assert {page: (few[page], count) for page, count in more.items() if count > few[page]} == {}
    assert {page: count for page, count in {**many, **more}.items() if count > MAX_QUERIES} == {}
