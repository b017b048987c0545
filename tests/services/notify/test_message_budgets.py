"""How many messages go out: what data planes cause takes no room from the rest, nor one of them from the others."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from controlplane.database.aliases import READER
from controlplane.journal.services import event_append
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import Channel, Delivery, Notification
from controlplane.notify.services.expanding import notifications_expand
from controlplane.notify.services.watching import Watch

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

MAD, OTHER = "id spiffe://demo/mad", "id spiffe://demo/pay"


@pytest.fixture(autouse=True)
def channel(database: str, settings: Settings) -> Channel:
    limits = replace(settings.PARLEY.limits, messages_per_h=8, messages_per_identity_h=5)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)
    return Channel.objects.create(name="ops", kind=ChannelKind.MAIL.value, target="ops@example.com")


def refused(*numbers: int, by: str = MAD, environment: str = "default") -> None:
    for number in numbers:
        payload = {"type": "cluster", "name": f"c{number}", "nacked": 1, "sent": 9, "cause": "nack", "caused_by": by}
        event_append(kind="incident.opened", environment=environment, subject=f"incident/{number}", payload=payload)


def happened(kind: str, subject: str = "one", **payload: object) -> None:
    event_append(kind=kind, environment="default", subject=subject, payload=payload)


def sent() -> Counter[str]:
    """How many of each kind channels are sent."""
    while notifications_expand():
        pass
    return Counter(Delivery.objects.values_list("notification__kind", flat=True))


def summaries() -> list[Notification]:
    Watch().look()
    notifications_expand()
    return list(Notification.objects.filter(kind="messages.held").order_by("pk"))


def later(minutes: int) -> None:
    for each in Notification.objects.all():
        Notification.objects.filter(pk=each.pk).update(at=each.at - timedelta(minutes=minutes))


def test_messages__a_flood_about_incidents__the_urgent_ones_of_other_causes_go_out() -> None:
    refused(*range(100), by=MAD)
    refused(*range(100, 200), by=OTHER)
    happened("quarantine.opened", type="cluster", name="pay", revision=2)
    happened("build.failed", generation=3, reason="XDS1004")
    happened("incident.opened", "loss", cause="loss", nacked=3, sent=3)
    happened("hold.set", actor="dana", reason="freeze")

    counted = sent()

    assert counted == {"incident.opened": 8 + 1, "quarantine.opened": 1, "build.failed": 1, "hold.set": 1}
    assert Notification.objects.count() == 204  # the inbox has all of them


def test_messages__about_what_one_identity_says__leave_room_for_those_about_others() -> None:
    refused(*range(100), by=MAD)
    refused(100, 101, by=OTHER)
    refused(102, by="several")
    refused(*range(200, 206), by=MAD, environment="other")

    sent()

    told = Delivery.objects.values_list("notification__environment", "notification__caused_by")
    assert Counter(told) == {
        ("default", MAD): 5, ("default", OTHER): 2, ("default", "several"): 1, ("other", MAD): 5
    }  # fmt: skip


def test_messages__after_an_hour__go_out_again() -> None:
    refused(*range(10))
    assert sent()["incident.opened"] == 5
    later(61)

    refused(*range(20, 30))

    assert sent()["incident.opened"] == 10


def test_messages__left_out__are_summed_up_once_an_hour_with_how_many_of_which_kind_and_where_they_are() -> None:
    refused(*range(10))
    for number in range(10):
        happened("quarantine.released", str(number), type="cluster", name="pay", revision=2)
    sent()
    assert summaries() == []  # more may come
    later(11)

    (first,) = summaries()

    assert first.title == "7 messages about 'default' were not sent"
    assert "5 incident.opened, 2 quarantine.released" in first.text
    assert "5 are about what 'spiffe://demo/mad' says" in first.text
    assert first.link.endswith("/messages")
    assert first.deliveries.count() == 1
    refused(*range(50, 60))
    sent()
    later(30)
    assert len(summaries()) == 1
    later(31)
    _, second = summaries()
    assert second.title == "10 messages about 'default' were not sent"
    later(200)
    assert len(summaries()) == 2


def test_summary__of_kinds_that_a_channel_wants__goes_there_and_to_no_other(channel: Channel) -> None:
    Channel.objects.filter(pk=channel.pk).update(kinds=["incident.opened"])
    Channel.objects.create(name="x", kind=ChannelKind.MAIL.value, target="x@example.com", kinds=["hold.set"])
    refused(*range(10))
    sent()
    later(11)

    (summary,) = summaries()

    assert [each.channel_id for each in summary.deliveries.all()] == [channel.pk]


def test_messages__held_because_of_who_said_it_first__go_out_once_others_say_it_too() -> None:
    refused(*range(20), by=MAD)
    assert sent() == {"incident.opened": 5}

    for number in (1, 12):  # the first was sent
        happened("incident.opened", f"incident/{number}", cause="nack", caused_by=[MAD, OTHER], again=True)
    for _ in range(3):
        happened("incident.opened", "incident/12", cause="nack", caused_by=[MAD, OTHER], again=True)

    assert sent() == {"incident.opened": 6}
    last = Notification.objects.order_by("pk").last()
    assert last is not None
    assert (last.subject, last.caused_by, last.deliveries.count()) == ("incident/12", OTHER, 1)


def test_messages__said_again_by_who_has_no_share_left__are_in_the_inbox_once_in_a_while() -> None:
    refused(*range(20), by=MAD)
    sent()
    before = Notification.objects.count()

    for _ in range(5):
        happened("incident.opened", "incident/12", cause="nack", caused_by=[MAD], again=True)

    assert sent() == {"incident.opened": 5}
    assert Notification.objects.count() == before


def test_messages__a_held_one__keeps_no_louder_one_about_the_same_from_going_out() -> None:
    refused(*range(20), by=MAD)
    sent()

    happened("incident.escalating", "incident/12", cause="nack", nacked=1, sent=9, caused_by=[MAD, OTHER])

    assert sent()["incident.escalating"] == 1


def test_summary__of_what_several_say__blames_none_of_them() -> None:
    refused(*range(8), by="several")
    for number in range(20, 24):
        happened("incident.opened", f"incident/{number}", cause="nack", caused_by=[MAD, OTHER])
    sent()
    later(11)

    (summary,) = summaries()

    assert "4 incident.opened" in summary.text
    assert "spiffe" not in summary.text
