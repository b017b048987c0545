"""Samples to channels: while somebody outside is waited for, nobody else's write waits, and nobody sends many."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any, TypeVar

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.config.values import WebhookAllow
from controlplane.database.aliases import READER
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel
from controlplane.notify.services import channel_create, samples
from tests.api.conftest import Caller, assert_problem, limited
from tests.support.webhook import Receiver, receiver

T = TypeVar("T")

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))
    with receiver() as running:
        yield running


def channel(url: str) -> Channel:
    return channel_create(wanted=NewChannel("ops", ChannelKind.WEBHOOK, url), actor=SYSTEM)[0]


def begun(request: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """A request in a thread of its own, as a server answers it."""

    async def answered() -> T:
        async with ThreadSensitiveContext():
            return await request

    return asyncio.ensure_future(answered())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  a receiver in another thread, which sets no event of this loop
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("by", ["rest", "console"])
async def test_sample__receiver_keeps_it_waiting__holds_up_no_write(
    settings: Settings, environments: None, hook: Receiver, by: str
) -> None:
    limited(settings, writes_at_once=1)
    made = await sync_to_async(channel)(hook.url)
    token = (await sync_to_async(api_token_create)(name="t", scopes=ADMIN_SCOPES, actor=SYSTEM))[1]
    bearer = {"Authorization": f"Bearer {token}"}
    rest, console = AsyncClient(), AsyncClient()
    person = await sync_to_async(get_user_model().objects.create_superuser)("admin", password="pw")
    await console.aforce_login(person)
    hook.hold()

    if by == "rest":
        sample = begun(rest.post(f"/api/v1/channels/{made.public_id}/test", headers=bearer))
    else:
        sample = begun(console.post(f"/channels/{made.public_id}", {"action": "test"}))
    await until(lambda: hook.waiting)
    write = begun(rest.delete(f"/api/v1/channels/{made.public_id}", headers=bearer))
    done, _ = await asyncio.wait([write], timeout=3)
    hook.let_go()
    answers = await asyncio.gather(sample, write)

    assert done, "the write waited for the receiver of the sample"
    assert [each.status_code for each in answers] == [200 if by == "rest" else 302, 204]


def test_sample__asked_for_too_often__429_and_nothing_is_sent(
    settings: Settings, api: Caller, hook: Receiver, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(settings, channel_tests_per_min=2)
    monkeypatch.setattr(samples, "_samples", samples._Samples())  # what other tests of this minute sent
    made = channel(hook.url)

    answers = [api.post(f"channels/{made.public_id}/test") for _ in range(3)]
    page = admin.post(f"/channels/{made.public_id}", {"action": "test"})

    assert [each.status for each in answers] == [200, 200, 429]
    assert_problem(answers[2], 429)
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 60
    assert b"PARLEY_LIMIT_CHANNEL_TESTS_PER_MIN is 2" in answers[2].content
    assert "PARLEY_LIMIT_CHANNEL_TESTS_PER_MIN is 2" in page.content.decode()
    assert len(hook.received) == 2


@pytest.fixture
def admin(environments: None) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("admin", password="pw"))
    return client
