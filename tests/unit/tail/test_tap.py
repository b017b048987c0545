"""What an ADS process tells watchers: what they want, bounded, and nothing of a secret."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as BrokerGone

from adsserver.engine.events import Fact, Violated
from adsserver.ports import MOVED_CAUSE
from adsserver.store import tail
from adsserver.store.contents import ContentMemory
from adsserver.store.sent_secrets import SentContents
from adsserver.store.tail import Tap, TappedFacts
from controlplane.catalog.sealing import key_ring
from controlplane.tail.sealed import batch_opened, interest_sealed
from controlplane.tail.values import Filter, Interest, Kind
from tests.support.ads import MemoryFacts
from tests.support.clocks import StandingClock
from tests.support.facts import NothingSecret, acknowledged, content, rejected, respond, stream, subscribed
from tests.support.manifests import parsed, tls_secret
from xdscore.errors import ResourceError, StatusCode
from xdscore.redaction import REDACTED
from xdscore.resource_types import SECRET
from xdscore.snapshot import Content

RATE = 20
CHANNEL = "parley:tail:to:user:1:x"


@dataclass
class Broker:
    """Keeps what was sent to channels on which somebody listens; fails on demand."""

    listening: set[str]
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    failure: Exception | None = None

    def __call__(self, channel: str, data: bytes) -> int:
        if self.failure is not None:
            raise self.failure
        self.sent.append((channel, data))
        return int(channel in self.listening)

    def told(self, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """The events that were sent to a channel, in order."""
        return [json.loads(text) for batch in self._batches(channel) for _, text in batch.events]

    def left_out(self, channel: str = CHANNEL) -> int:
        return sum(batch.left_out for batch in self._batches(channel))

    def _batches(self, channel: str) -> list[Any]:
        return [batch_opened(data, to) for to, data in self.sent if to == channel]


class Told:
    """A tap between streams and a broker, on a clock that stands still, without its thread."""

    def __init__(self, contents: SentContents | None = None) -> None:
        self.broker = Broker({CHANNEL, f"{CHANNEL}2"})
        self.clock = StandingClock()
        self.tap = Tap(contents or NothingSecret(), self.broker, events_per_s=RATE, clock=self.clock, now=lambda: 0.0)
        self.written = MemoryFacts()
        self.facts = TappedFacts(self.written, self.tap)

    def watch(self, wanted: Filter | None = None, *, channel: str = CHANNEL, environment: str = "default") -> None:
        self.tap.announced(interest_sealed(Interest(channel, environment, wanted or Filter())))

    def tell(self) -> list[dict[str, Any]]:
        self.tap.tell()
        return self.broker.told()


def test_tap__whatever_happens_on_a_stream__is_told_as_what_it_is() -> None:
    told, one = Told(), stream(1, node_id="checkout")
    told.watch()
    gone = ResourceError("gone", StatusCode.NOT_FOUND, "XDS2001", "There is no cluster 'gone'.")
    response = replace(respond(content("pay"), version="w1"), errors=(gone,))

    told.facts.opened(one)
    told.facts.learnt(one, subscribed("pay", "gone"))
    told.facts.sent(one, response)
    told.facts.learnt(one, acknowledged(response))
    told.facts.learnt(one, rejected(response))
    told.facts.closed(one, MOVED_CAUSE)
    told.facts.closed(one, "The client left.")

    events = told.tell()
    assert [each["kind"] for each in events] == [
        *("opened", "subscribed", "sent", "error", "acked", "nacked", "moved", "closed")
    ]
    assert {(each["node_id"], each["environment"], each["stream"]) for each in events} == {
        ("checkout", "default", one.id)
    }
    sent, error, nacked = events[2], events[3], events[5]
    assert (sent["type"], sent["names"], sent["version"]) == ("cluster", ["pay"], "w1")
    assert (error["names"], error["errors"][0]["status"]) == (["gone"], "NOT_FOUND")
    assert nacked["code"] == rejected(response).nack.code
    assert nacked["text"] == rejected(response).nack.message


def test_tap__nobody_watches__notes_nothing_and_facts_go_their_way() -> None:
    told, one = Told(), stream()

    told.facts.opened(one)
    told.facts.sent(one, respond(content("pay")))
    told.watch()

    assert told.tell() == []
    assert (len(told.written.opened_streams), len(told.written.responses)) == (1, 1)


def test_tap__violation__is_told_to_nobody_but_the_facts() -> None:
    told, one = Told(), stream()
    told.watch()
    broken: Fact = Violated("C11", "too many")

    told.facts.learnt(one, broken)

    assert told.tell() == []
    assert told.written.learnt_facts == [(one, broken)]


def test_tap__another_environment__hears_nothing_of_this_one() -> None:
    told = Told()
    told.watch(environment="prod", channel=f"{CHANNEL}2")
    told.watch()

    told.facts.opened(stream(1, environment="default"))

    assert len(told.tell()) == 1
    assert told.broker.told(f"{CHANNEL}2") == []


def test_tap__name_is_asked_for__it_is_listed_first_and_others_are_not_told() -> None:
    told, one = Told(), stream()
    told.watch(Filter(name="z"))
    many = respond(*(content(f"c{number:02}") for number in range(20)), content("z"))

    told.facts.sent(one, respond(content("a")))
    told.facts.sent(one, many)

    (event,) = told.tell()
    assert (event["names"][0], event["name_count"], len(event["names"])) == ("z", 21, 8)


def test_tap__more_than_a_watcher_is_told__is_counted_and_only_against_it() -> None:
    told, one = Told(), stream()
    told.watch()
    told.watch(Filter(kinds=frozenset({Kind.CLOSED})), channel=f"{CHANNEL}2")

    for _ in range(3 * RATE):
        told.facts.opened(one)
    told.facts.closed(one, "bye")

    assert len(told.tell()) == RATE
    assert told.broker.left_out() == 2 * RATE + 1
    assert (len(told.broker.told(f"{CHANNEL}2")), told.broker.left_out(f"{CHANNEL}2")) == (1, 0)


def test_tap__more_than_fits_between_two_looks__is_counted_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_MAX_NOTED", 5)
    told = Told()
    told.watch()
    told.watch(environment="prod", channel=f"{CHANNEL}2")

    for number in range(9):
        told.facts.opened(stream(number))
    told.facts.opened(stream(1, environment="prod"))

    assert len(told.tell()) == 5
    assert (told.broker.left_out(), told.broker.left_out(f"{CHANNEL}2")) == (4, 0)


def test_tap__its_time_is_up__what_is_left_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_WORK_S", 0.0)
    told = Told()
    told.watch()

    told.facts.opened(stream())

    assert told.tell() == []
    assert told.broker.left_out() == 1


def test_tap__watcher_says_no_more__is_forgotten_and_streams_cost_nothing_again() -> None:
    told = Told()
    told.watch()
    told.clock.passes(5.1)

    told.tell()

    assert not told.tap.watched


def test_tap__nobody_listens_on_the_channel__is_forgotten_with_the_first_event() -> None:
    told = Told()
    told.watch(channel="parley:tail:to:user:1:gone")

    told.facts.opened(stream())
    told.tell()

    assert not told.tap.watched


def test_tap__broker_is_away__forgets_watchers_until_they_announce_themselves_again() -> None:
    told = Told()
    told.watch()
    told.broker.failure = BrokerGone("away")

    told.facts.opened(stream())
    told.tell()
    forgotten = not told.tap.watched
    told.broker.failure = None
    told.watch()
    told.facts.opened(stream())

    assert forgotten
    assert len(told.tell()) == 1


@pytest.mark.parametrize("forged", [b"", b"\x01" * 40, b"{}", b"x" * 2_000_000], ids=["empty", "ones", "plain", "long"])
def test_tap__announcement_that_nobody_of_us_wrote__is_ignored(forged: bytes) -> None:
    told = Told()

    told.tap.announced(forged)

    assert not told.tap.watched


def test_tap__more_watchers_than_there_can_be__are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_MAX_INTERESTS", 1)
    told = Told()
    told.watch(channel=f"{CHANNEL}2")

    told.watch()
    told.facts.opened(stream())

    assert told.tell() == []


def test_tap__nack_that_quotes_a_key__is_told_without_it() -> None:
    sealed = Content(b"2" * 16, "v2", 3)
    memory = ContentMemory()
    memory.add({}, {sealed.blob: key_ring().seal(parsed(tls_secret("pay", "a key 7f3a91")).any_bytes, sealed.blob)})
    told, one = Told(memory), stream()
    told.watch()
    response = respond(replace(content("pay"), content=sealed), kind=SECRET)
    refusal = rejected(response)
    refusal = replace(refusal, nack=replace(refusal.nack, message="no: a key 7f3a91 is bad"))

    told.facts.learnt(one, refusal)

    (event,) = told.tell()
    assert "7f3a91" not in json.dumps(event)
    assert REDACTED in event["text"]
    # Nor in what waited: only as much of the words as may be shown is held on to.
    assert told.written.learnt_facts == [(one, refusal)]


def test_tap__words_of_a_client__are_bounded_and_drive_no_terminal() -> None:
    told, one = Told(), stream(1, node_id="\x1b[31m" + "n" * 5_000)
    told.watch()
    refusal = rejected(respond(content("pay\u202e" + "p" * 900)))
    refusal = replace(refusal, nack=replace(refusal.nack, message="\x07 bad " * 100_000))

    told.facts.learnt(one, refusal)

    (event,) = told.tell()
    assert len(json.dumps(event)) < 4_000
    assert all(each.isprintable() for each in (event["node_id"], event["text"], *event["names"], *event["suspects"]))
