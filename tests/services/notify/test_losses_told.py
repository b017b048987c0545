"""What people are told when clients lost something by a change, and when it is over."""

import json
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.guarding import Loser, Loss, LostName
from controlplane.config.values import WebhookAllow
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Notification
from controlplane.notify.services import channel_create, notify
from tests.services.incidents.fleet import publish, rebuild
from tests.support.losses import lose, take_back
from tests.support.manifests import cluster
from tests.support.webhook import Receiver, receiver

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

HOSTILE = "<img src=x onerror=alert(1)> <!channel> \x1b[31m\u202e`rm` *x*"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))
    with receiver() as running:
        yield running


def test_notify__clients_lost_something__is_urgent_and_says_who_wrote_it_what_is_lost_and_the_way_back(
    hook: Receiver, settings: Settings
) -> None:
    channel_create(wanted=NewChannel("ops", ChannelKind.WEBHOOK, hook.url), actor=SYSTEM)
    change = lose(publish(cluster("pay"), cluster("other"), built=False))
    rebuild()

    for _ in range(3):
        digest()
        notify()

    (sent,) = hook.received
    body = json.loads(sent.body)
    assert (body["kind"], body["severity"]) == ("incident.opened", "page")
    assert body["title"] == "3 of 5 connected clients lost 2 names in 'default'"
    assert body["link"] == f"{settings.PARLEY.public_url}/changes/{change}"
    for said in (
        "cluster 'pay' (3 clients), cluster 'other' (1 client).",
        "Who: node-1, node-2, node-3.",
        "Of these kinds: 2 envoy 1.40, 1 grpc-go 1.70.",
        f"by change {change[:8]} of dana: “why”. The page of the change has the way back. Lost since 2",
    ):
        assert said in body["text"], said


def test_notify__what_was_lost_is_taken_back__is_told_quietly(settings: Settings) -> None:
    change = lose(publish(cluster("pay"), built=False))
    rebuild()
    digest()
    take_back(change, by=publish(cluster("pay", connect_timeout="2s"), built=False))
    rebuild()

    digest()
    notify()

    opened, resolved = Notification.objects.order_by("pk")
    incident = str(Incident.objects.get().public_id)
    assert (opened.kind, opened.severity) == ("incident.opened", "page")
    assert (resolved.kind, resolved.severity) == ("incident.resolved", "quiet")
    assert resolved.title == "What 3 of 5 connected clients lost in 'default' is no open incident any more"
    assert f"They lost 2 names by change {change[:8]} of dana on 2" in resolved.text
    assert resolved.link == f"{settings.PARLEY.public_url}/incidents/{incident}"


def test_notify__a_loss_in_hostile_words__is_harmless() -> None:
    names = (LostName("cluster", HOSTILE, 3),)
    who = (Loser("c1", HOSTILE, f"envoy {HOSTILE}"),)
    lose(publish(cluster("pay"), built=False), Loss(3, 5, {HOSTILE: 3}, names, who=who))
    rebuild()

    digest()
    notify()

    text = Notification.objects.get().text
    assert text.count(r"\x1b[31m\u202e") == 3
    assert text.isprintable()
