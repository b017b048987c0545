"""The ladder over facts alone: which streams ask for a name, and what several suspects leave open."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.explain.answers import answer_of
from controlplane.explain.ladder import ladder_of
from controlplane.explain.values import (
    Asked,
    ClientSide,
    Has,
    Held,
    NameFacts,
    Origin,
    Question,
    Refusal,
    RungState,
)
from xdscore.access import Effect
from xdscore.after_nack import AfterNack, now_runs
from xdscore.decision import Serve
from xdscore.holdings import HoldingState
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Content

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SERVED = Serve(Content(bytes(16), "v1", 10), None)
QUESTION = Question("prod", CLUSTER, "pay")
NAME = NameFacts(
    SERVED, SERVED, answer_of(SERVED, kind=CLUSTER, name="pay", environment="prod"), default=Effect.ALLOW, epoch=4
)
ASKS = Asked(("pay",), wildcard=False)
CLIENT = ClientSide(
    "id", "prod", "", "node-1", "grpc-core", connected=True, last_seen=NOON + timedelta(hours=1), asked=(ASKS,)
)
MEMBER = "xdstp://a/envoy.config.cluster.v3.Cluster/shop/pay"


@pytest.mark.parametrize(
    ("names", "wildcard", "name", "covers"),
    [
        (("pay",), False, "pay", True),
        (("pay2",), False, "pay", False),
        ((), True, "pay", True),
        ((), True, MEMBER, False),  # a wildcard means no xdstp name (protocol.md H3)
        ((MEMBER,), False, MEMBER, True),
        ((MEMBER.replace("/pay", "/*"),), False, MEMBER, True),
        ((MEMBER.replace("shop/pay", "*"),), False, MEMBER, False),
    ],
)
def test_asked__name_wildcard_or_collection__covers_what_the_wire_does(
    names: tuple[str, ...], wildcard: bool, name: str, covers: bool
) -> None:
    assert Asked(names, wildcard).covers(name) is covers


RUNS = Held(HoldingState.ACKED, "v1", 2, "v1", 2, since=NOON)
CLIENT = replace(CLIENT, held=RUNS)


@pytest.mark.parametrize(
    ("held", "has", "says"),
    [
        (RUNS, Has.YES, "Cluster 'pay' is served in 'prod'"),
        (replace(RUNS, state=HoldingState.NACKED), Has.NO, "too blue"),
        (replace(RUNS, state=HoldingState.UNKNOWN, message="It is not told apart yet."), Has.UNKNOWN, "not told apart"),
        (replace(RUNS, state=HoldingState.SENT, acked_revision=1), Has.NO, "it goes on with r1."),
        (replace(RUNS, version="v0", revision=1, acked_revision=1), Has.NO, "was not sent to it yet; it runs r1 since"),
        (replace(RUNS, state=HoldingState.SENT, version="v0"), Has.NO, "what it was sent before is not settled"),
        (Held(HoldingState.ERROR_SENT), Has.NO, "it was told that it cannot have it."),
        (Held(HoldingState.REQUESTED), Has.UNKNOWN, "was sent nothing of it yet."),
        (Held(HoldingState.REQUESTED, others=True), Has.NO, "it was sent others of its type."),
        (None, Has.UNKNOWN, "within two seconds"),
    ],
)
def test_ladder__what_the_client_has__is_the_answer(held: Held | None, has: Has, says: str) -> None:
    refused = held is not None and held.state is HoldingState.NACKED
    client = replace(CLIENT, held=held, refusal=Refusal("too blue", NOON) if refused else None)

    ladder = ladder_of(QUESTION, NAME, client)

    assert ladder.has is has
    assert says in ladder.sentence


@pytest.mark.parametrize(
    ("connected", "says"),
    [(True, "It runs r2. It has a ttl of 30s: "), (False, "It has a ttl of 30s: ")],
)
def test_ladder__content_with_a_ttl__says_when_clients_drop_it(connected: bool, says: str) -> None:
    expiring = Serve(Content(bytes(16), "v1-ttl30000", 10), None)
    held = Held(HoldingState.ACKED, "v1-ttl30000", 2, "v1-ttl30000", 2, since=NOON)
    client = replace(CLIENT, held=held, connected=connected)

    now = ladder_of(QUESTION, replace(NAME, decision=expiring, existence=expiring), client).rungs[-1]

    assert now.text.startswith(says)
    assert "drop it so long after the last renewal" in now.text


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (HoldingState.NACKED, "Write a new revision, or quarantine this one."),
        (HoldingState.SENT, "Ask again in a moment, or look at the client's own log."),
        (HoldingState.UNKNOWN, "Ask again in a moment."),
    ],
)
def test_ladder__not_taken__only_what_was_refused_is_to_be_written_anew(state: HoldingState, step: str) -> None:
    client = replace(CLIENT, held=replace(RUNS, state=state), refusal=Refusal("too blue", NOON))

    assert ladder_of(QUESTION, NAME, client).next == (step,)


@pytest.mark.parametrize(
    ("acked", "fallback", "headline"),
    [
        (1, True, "It runs r1 and refused r2"),
        (1, False, "It runs r1 and refused r2"),
        (None, True, "It refused r2 and is offered r1"),
        (None, False, ""),
    ],
)
def test_ladder__refused_and_an_earlier_revision_stands_in__headline_names_both(
    acked: int | None, fallback: bool, headline: str
) -> None:
    held = Held(HoldingState.NACKED, "v1", 2, "v0" if acked else "", acked)
    client = replace(CLIENT, held=held, refusal=Refusal("too blue", NOON))
    first, second = (Origin(number, "dana", f"c{number}", NOON) for number in (1, 2))

    ladder = ladder_of(QUESTION, replace(NAME, served=second, fallback=first if fallback else None), client)

    assert ladder.headline == headline
    assert ladder.sentence.startswith(headline)
    assert ladder.has is Has.NO


@pytest.mark.parametrize(
    ("after", "kept", "healed", "says", "state"),
    [
        (AfterNack.KEEPS, "r1", False, "goes on with r1", RungState.OK),
        (AfterNack.KEEPS_WHERE_IN_USE, "r1", False, "goes on with r1 where that is in use", RungState.OK),
        (AfterNack.MAY_DROP, "r1", False, "may have dropped r1", RungState.UNKNOWN),
        (AfterNack.MAY_DROP, "r1", True, "was given r1 again", RungState.OK),
        (AfterNack.KEEPS, "", False, "had acknowledged nothing else of it on this stream", RungState.UNKNOWN),
    ],
)
def test_ladder__refused__says_what_is_known_of_what_the_client_has_instead(
    after: AfterNack, kept: str, healed: bool, says: str, state: RungState
) -> None:
    refusal = Refusal("too blue", NOON, now_runs(after, kept, healed=healed))
    client = replace(CLIENT, held=replace(RUNS, state=HoldingState.NACKED), refusal=refusal)

    ladder = ladder_of(QUESTION, replace(NAME, served=Origin(2, "dana", "c2", NOON)), client)

    assert ladder.headline == f"It refused r2 and {says}"
    now = ladder.rungs[-1]
    assert (now.state, now.text) == (state, f"It {says}.")


THEN = replace(QUESTION, at=4, time=NOON)
AS_OF = "As of 2026-11-21 12:00:00 UTC, when snapshot 4 was served: "


@pytest.mark.parametrize(
    ("client", "has", "says"),
    [
        (CLIENT, Has.YES, "Cluster 'pay' is served in 'prod'"),
        (replace(CLIENT, held=replace(RUNS, version="v0", revision=1, acked_revision=1)), Has.NO, "it runs r1"),
        (replace(CLIENT, asked=(), held=None), Has.NO, "Connected then, but it did not ask for cluster 'pay'."),
        (replace(CLIENT, connected=False, asked=(), held=None), Has.UNKNOWN, "No stream of it is known that was open"),
        (replace(CLIENT, asked=(), held=None, unknown="Nobody knows any more."), Has.UNKNOWN, "Nobody knows any more."),
    ],
)
def test_ladder__at_a_time__says_the_time_and_goes_by_what_the_client_had_then(
    client: ClientSide, has: Has, says: str
) -> None:
    ladder = ladder_of(THEN, NAME, client)

    assert ladder.has is has
    assert ladder.sentence.startswith(AS_OF)
    assert says in ladder.sentence
    assert ladder.next == ()  # nothing can be done about what was


def test_ladder__at_an_epoch_without_a_time__leaves_out_what_clients_did() -> None:
    ladder = ladder_of(replace(QUESTION, at=4), NAME, CLIENT)

    assert [rung.number for rung in ladder.rungs if rung.state is RungState.SKIPPED] == [3, 6, 7, 8]
    assert ladder.sentence.startswith("Cluster 'pay' is served")


def test_ladder__every_rung__is_a_sentence_and_numbered_in_order() -> None:
    for client in (None, CLIENT, replace(CLIENT, connected=False), replace(CLIENT, environment="test")):
        ladder = ladder_of(QUESTION, NAME, client)
        assert [rung.number for rung in ladder.rungs] == list(range(1, 9))
        assert all(rung.text.endswith(".") for rung in ladder.rungs)
        assert (ladder.has is Has.YES) == all(rung.state in (RungState.OK, RungState.SKIPPED) for rung in ladder.rungs)
