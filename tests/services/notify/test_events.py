"""Events that people are told of beside incidents: holds, what ends soon, and clients that fall silent."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.accounts.principal import SYSTEM
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_update
from controlplane.catalog.values import Put
from controlplane.clients.clock import database_now
from controlplane.clients.models import Subscription
from controlplane.databases import READER
from controlplane.notify.models import Notification
from controlplane.notify.services.expanding import notifications_expand
from controlplane.notify.services.watching import Watch, ends_notice, silence_notice
from tests.services.incidents.fleet import DANA, Fleet, held, publish
from tests.support.manifests import cluster, parsed

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def told() -> list[tuple[str, str]]:
    """(environment, title) of everything people were told so far, oldest first."""
    notifications_expand()
    return list(Notification.objects.order_by("pk").values_list("environment", "title"))


def hold(reason: str) -> None:
    policy = environment_get(key="default").policy
    environment_update(key="default", policy=replace(policy, hold=reason), actor=DANA)


def test_hold__set_and_released__both_are_told_with_who_and_why() -> None:
    hold("freeze until Monday")
    hold("")

    assert told() == [("default", "'default' is held"), ("default", "'default' takes changes again")]
    texts = list(Notification.objects.order_by("pk").values_list("text", flat=True))
    assert all("dana" in text and "freeze until Monday" in text for text in texts)


def test_hold__by_a_rollback__is_told_and_another_edit_of_the_policy_is_not() -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("a")))], actor=DANA, hold="rolled back: bad")
    policy = environment_get(key="default").policy
    environment_update(key="default", policy=replace(policy, deep_validation=True), actor=DANA)

    assert told() == [("default", "'default' is held")]


@pytest.mark.parametrize(("days", "words"), [(13.5, "14 days"), (2.5, "3 days"), (0.5, "a day")])
def test_token__ends_soon__is_told_once_for_each_notice(days: float, words: str) -> None:
    ends = database_now() + timedelta(days=days)
    api_token_create(name="ci", scopes=(), actor=SYSTEM, expires_at=ends)
    client_token_create(subject="edge", environment="default", actor=SYSTEM, expires_at=ends)

    for _ in range(2):
        ends_notice()
        told()

    assert told() == [("", f"Token 'ci' expires within {words}"), ("default", f"Token 'edge' expires within {words}")]


def test_token__ends_later_or_has_ended__is_not_told() -> None:
    for days in (15, -1):
        api_token_create(name="ci", scopes=(), actor=SYSTEM, expires_at=database_now() + timedelta(days=days))

    ends_notice()

    assert told() == []


def sent_ago(minutes: float) -> None:
    Subscription.objects.update(sent_at=database_now() - timedelta(minutes=minutes))


def test_clients__say_nothing_for_a_minute__one_message_with_how_many() -> None:
    publish(cluster("pay"))
    fleet = Fleet(7)
    fleet.accept(held("pay", 1), who=slice(1))
    sent_ago(2)

    for _ in range(2):
        silence_notice()
        told()

    assert told() == [("default", "6 clients do not answer in 'default'")]
    assert "node-2, node-3, node-4, node-5, node-6, …" in Notification.objects.get().text


@pytest.mark.parametrize("minutes", [0.5, 20.0])
def test_clients__silent_for_a_moment_or_for_long__is_no_news(minutes: float) -> None:
    publish(cluster("pay"))
    Fleet(2).send(held("pay", 1))
    sent_ago(minutes)

    silence_notice()

    assert told() == []


def test_watch__called_by_each_sweep__looks_at_its_times_only() -> None:
    now = 0.0
    watch = Watch(lambda: now)
    publish(cluster("pay"))
    Fleet(1).send(held("pay", 1))

    watch.look()
    sent_ago(2)
    now = 29.0
    watch.look()
    assert told() == []

    now = 30.0
    watch.look()
    assert told() == [("default", "1 client does not answer in 'default'")]
