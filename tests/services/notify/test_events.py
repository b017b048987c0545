"""Events that people are told of beside incidents: holds, what ends soon, and clients that fall silent."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.accounts.principal import SYSTEM
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.catalog.freezes import Freeze
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_update
from controlplane.catalog.undoing import GoesBack
from controlplane.catalog.values import Put
from controlplane.clients.clock import database_now
from controlplane.clients.drops import is_drop
from controlplane.clients.models import Stream, Subscription
from controlplane.database.aliases import READER
from controlplane.notify.models import Notification
from controlplane.notify.services.expanding import notifications_expand
from controlplane.notify.services.watching import Watch, drop_notice, ends_notice, silence_notice
from tests.services.incidents.fleet import DANA, Fleet, held, publish
from tests.support.facts import stream
from tests.support.manifests import cluster, parsed

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

STARTED = datetime.now(UTC).replace(microsecond=0)


def told() -> list[tuple[str, str]]:
    """(environment, title) of everything people were told so far, oldest first."""
    notifications_expand()
    return list(Notification.objects.order_by("pk").values_list("environment", "title"))


def hold(reason: str) -> None:
    policy = environment_get(key="default").policy
    environment_update(key="default", policy=replace(policy, hold=reason), actor=DANA)


def freeze(*hours: float, deep_validation: bool = False) -> None:
    """Freeze the environment until so many hours from the start of these tests, once for each of them."""
    held = tuple(
        Freeze(f"until {each}", STARTED - timedelta(hours=1), STARTED + timedelta(hours=each)) for each in hours
    )
    policy = replace(environment_get(key="default").policy, freezes=held, deep_validation=deep_validation)
    environment_update(key="default", policy=policy, actor=DANA)


def test_hold__set_and_released__both_are_told_with_who_and_why() -> None:
    hold("freeze until Monday")
    hold("")

    assert told() == [("default", "'default' is on hold"), ("default", "'default' takes changes again")]
    texts = list(Notification.objects.order_by("pk").values_list("text", flat=True))
    assert all("dana" in text and "freeze until Monday" in text for text in texts)


def test_hold__by_a_rollback__is_told_and_another_edit_of_the_policy_is_not() -> None:
    change_apply(
        environment_key="default", edits=[Put(parsed(cluster("a")))], actor=DANA, back=GoesBack(hold="rolled back: bad")
    )
    policy = environment_get(key="default").policy
    environment_update(key="default", policy=replace(policy, deep_validation=True), actor=DANA)

    assert told() == [("default", "'default' is on hold")]


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ((), "By dana it takes changes from now on."),
        ((2.0,), "By dana it ends at "),
        ((2.0, 3.0), "By dana it ends at "),
    ],
)
def test_freeze__ended_or_shortened_while_it_holds__is_told_with_who_and_why(
    after: tuple[float, ...], says: str
) -> None:
    freeze(24.0)
    assert told() == []

    freeze(*after)

    assert told() == [("default", "The freeze of 'default' ends before its time")]
    text = Notification.objects.get().text
    assert text.startswith(says)
    assert text.endswith("for: until 24.0.")


@pytest.mark.parametrize(
    ("before", "after"),
    [((24.0,), (24.0,)), ((24.0,), (48.0,)), ((24.0,), (24.0, 2.0)), ((24.0, 2.0), (24.0,)), ((), ())],
)
def test_freeze__that_holds_as_long_as_before__is_not_told(before: tuple[float, ...], after: tuple[float, ...]) -> None:
    freeze(*before)
    freeze(*after, deep_validation=True)

    assert told() == []


def test_freeze__ended_before_it_began__is_not_told() -> None:
    begins = database_now() + timedelta(hours=1)
    policy = environment_get(key="default").policy
    later = replace(policy, freezes=(Freeze("later", begins, begins + timedelta(hours=1)),))
    environment_update(key="default", policy=later, actor=DANA)

    freeze()

    assert told() == []


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
        api_token_create(name=f"ci {days}", scopes=(), actor=SYSTEM, expires_at=database_now() + timedelta(days=days))

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


def long_connected(count: int) -> None:
    """So many clients, connected for ten minutes."""
    Fleet(count)
    Stream.objects.update(opened_at=database_now() - timedelta(minutes=10))


def left(count: int, *, seconds_ago: float) -> None:
    """The first so many clients closed their streams."""
    ids = [stream(number).id for number in range(1, count + 1)]
    closed_at = database_now() - timedelta(seconds=seconds_ago)
    Stream.objects.filter(pk__in=ids).update(closed_at=closed_at, cause="the connection was lost")


def test_fleet__shrinks_within_a_minute__one_loud_message_with_how_many_who_and_why() -> None:
    long_connected(10)
    left(6, seconds_ago=30)

    for _ in range(2):
        drop_notice()
        told()

    assert told() == [("default", "6 of 10 clients are gone from 'default'")]
    message = Notification.objects.get()
    assert "node-1, node-2, node-3, node-4, node-5, …" in message.text
    assert "ended so: the connection was lost." in message.text
    assert (message.kind, message.severity) == ("fleet.dropped", "page")


@pytest.mark.parametrize(
    ("of", "gone", "seconds_ago"),
    [(10, 2, 30), (1, 1, 30), (10, 6, 5), (10, 6, 120)],
    ids=["a fifth", "a single client", "a moment ago", "long ago"],
)
def test_fleet__loses_few_or_not_just_now__is_no_news(of: int, gone: int, seconds_ago: float) -> None:
    long_connected(of)
    left(gone, seconds_ago=seconds_ago)

    drop_notice()

    assert told() == []


@pytest.mark.parametrize("same", [True, False], ids=["the same", "others"])
def test_fleet__clients_come_back_or_others_in_their_place__is_no_news(same: bool) -> None:
    long_connected(10)
    left(6, seconds_ago=40)
    back = Fleet(0)
    for number in range(1, 7):
        back.buffer.opened(stream(100 + number, node_id=f"node-{number}" if same else ""))
    back.write()
    Stream.objects.filter(pk__in=[stream(100 + number).id for number in range(1, 7)]).update(
        opened_at=database_now() - timedelta(seconds=20)
    )

    drop_notice()

    assert told() == []


def test_drop__is_more_than_the_share_and_more_than_one_client() -> None:
    assert [is_drop(10, after, percent=20) for after in (12, 10, 8, 7, 0)] == [False, False, False, True, True]
    assert [is_drop(before, 0, percent=100) for before in (1, 2)] == [False, False]
    assert [is_drop(before, 0, percent=99) for before in (1, 2)] == [False, True]


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
