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
    NameFacts,
    Origin,
    Question,
    Refusal,
    Reply,
    RungState,
)
from xdscore.access import Effect
from xdscore.after_nack import AfterNack, now_runs
from xdscore.decision import Serve
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Content

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SERVED = Serve(Content(bytes(16), "v1", 10), None)
QUESTION = Question("prod", CLUSTER, "pay")
NAME = NameFacts(
    SERVED, SERVED, answer_of(SERVED, kind=CLUSTER, name="pay", environment="prod"), default=Effect.ALLOW, epoch=4
)
ACKED = Asked(("pay",), wildcard=False, reply=Reply.ACKED, sent="w", sent_at=NOON, acked="w", acked_at=NOON)
CLIENT = ClientSide(
    "id", "prod", "", "node-1", "grpc-core", connected=True, last_seen=NOON + timedelta(hours=1), asked=(ACKED,)
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
    assert Asked(names, wildcard, Reply.ACKED).covers(name) is covers


@pytest.mark.parametrize(
    ("reply", "sure", "has"),
    [
        (Reply.NACKED, True, Has.NO),
        (Reply.ACKED, True, Has.NO),  # what it acknowledged is what stands in for what it refused
        (Reply.NACKED, False, Has.UNKNOWN),
        (Reply.ACKED, False, Has.YES),  # the others of the response were to blame: it accepted this one later
    ],
)
def test_ladder__refusal__no_only_when_nothing_else_could_be_meant(reply: Reply, sure: bool, has: Has) -> None:
    client = replace(CLIENT, asked=(replace(ACKED, reply=reply),), refusal=Refusal("too blue", NOON, sure))

    ladder = ladder_of(QUESTION, NAME, client)

    assert ladder.has is has
    assert ("too blue" in ladder.sentence) is (has is not Has.YES)


@pytest.mark.parametrize(
    ("reply", "sure", "headline"),
    [
        (Reply.ACKED, True, "It runs r1 and refused r2"),
        (Reply.NACKED, True, "It runs r1 and refused r2"),  # nothing was sent since: it had r1 before
        (Reply.SENT, True, "It refused r2 and is offered r1"),
        (Reply.NACKED, False, ""),
        (Reply.ACKED, False, ""),
    ],
)
def test_ladder__refused_and_an_earlier_revision_stands_in__headline_names_both(
    reply: Reply, sure: bool, headline: str
) -> None:
    client = replace(CLIENT, asked=(replace(ACKED, reply=reply),), refusal=Refusal("too blue", NOON, sure))
    first, second = (Origin(number, "dana", f"c{number}", NOON) for number in (1, 2))

    ladder = ladder_of(QUESTION, replace(NAME, served=second, fallback=first), client)
    unknown = ladder_of(QUESTION, replace(NAME, served=second), client)

    assert ladder.headline == headline
    never = replace(client, asked=(replace(ACKED, reply=reply, acked_at=None),))
    assert ("It runs" in ladder_of(QUESTION, replace(NAME, served=second, fallback=first), never).headline) is (
        sure and reply is Reply.ACKED
    )
    assert ladder.sentence.startswith(headline)
    assert unknown.headline == ""


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
    refusal = Refusal("too blue", NOON, True, now_runs(after, kept, healed=healed))
    client = replace(CLIENT, asked=(replace(ACKED, reply=Reply.NACKED),), refusal=refusal)

    ladder = ladder_of(QUESTION, replace(NAME, served=Origin(2, "dana", "c2", NOON)), client)

    assert ladder.headline == f"It refused r2 and {says}"
    now = ladder.rungs[-1]
    assert (now.state, now.text) == (state, f"It {says}.")


def test_ladder__two_streams__the_one_that_needs_attention_answers() -> None:
    waiting = replace(ACKED, reply=Reply.SENT)

    ladder = ladder_of(QUESTION, NAME, replace(CLIENT, asked=(ACKED, waiting)))

    assert ladder.has is Has.UNKNOWN
    assert ladder.sentence == "It has not answered the last response yet."


def test_ladder__every_rung__is_a_sentence_and_numbered_in_order() -> None:
    for client in (None, CLIENT, replace(CLIENT, connected=False), replace(CLIENT, environment="test")):
        ladder = ladder_of(QUESTION, NAME, client)
        assert [rung.number for rung in ladder.rungs] == list(range(1, 9))
        assert all(rung.text.endswith(".") for rung in ladder.rungs)
        assert (ladder.has is Has.YES) == all(rung.state in (RungState.OK, RungState.SKIPPED) for rung in ladder.rungs)
