"""What a client has of a name it asks for: the seven states and their sentences."""

from datetime import UTC, datetime

import pytest

from controlplane.explain.delivery import Delivery, DeliveryState, NameKnown, delivery_of
from controlplane.explain.values import Asked, Refusal, Reply
from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld
from xdscore.snapshot import Content

AT = datetime(2026, 5, 4, 2, 14, tzinfo=UTC)
CONTENT = Content(bytes(16), "v1", 10)


def delivered(
    decision: Decision, reply: Reply = Reply.ACKED, *, refusal: Refusal | None = None, revision: int = 18
) -> Delivery:
    known = NameKnown("cluster", "pay", decision, revision, "NOT_FOUND [XDS2101] …", refusal)
    return delivery_of(known, Asked(("pay",), wildcard=False, reply=reply, sent_at=AT, acked_at=AT))


@pytest.mark.parametrize(
    ("reply", "state", "sentence"),
    [
        (Reply.ACKED, DeliveryState.ACKED, "Runs r18."),
        (Reply.SENT, DeliveryState.SENT, "r18 was sent; no answer yet."),
        (Reply.REQUESTED, DeliveryState.REQUESTED, "Asked for it; r18 is about to be sent."),
        (Reply.NACKED, DeliveryState.SENT, "was sent again in a response that it refused over another resource"),
    ],
)
def test_delivery__served__is_what_the_client_answered(reply: Reply, state: DeliveryState, sentence: str) -> None:
    found = delivered(Serve(CONTENT, None), reply)

    assert found.state is state
    assert sentence in found.sentence
    assert found.told == ""


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (Denied(17, "no"), "Told PERMISSION_DENIED, by rule 17"),
        (Denied(0, ""), "Told PERMISSION_DENIED, by the environment's default"),
        (Missing(), "Told NOT_FOUND: nobody has published it."),
        (Missing(removed=True), "Told NOT_FOUND: it was removed."),
        (Missing(hidden=True, rule=3), "because rule 3 hides it"),
        (Missing(hidden=True), "because the environment's default hides it"),
        (Withheld("it needs cluster x"), "Told INTERNAL"),
    ],
)
def test_delivery__not_served__is_the_error_it_was_told_with_its_text(decision: Decision, says: str) -> None:
    found = delivered(decision)

    assert found.state is DeliveryState.ERROR_SENT
    assert says in found.sentence
    assert found.told.startswith("NOT_FOUND [XDS2101]")


@pytest.mark.parametrize(
    ("fallback", "sure", "says"),
    [
        (None, True, "keeps what it had before, or has nothing"),
        (CONTENT, True, "served the last revision that clients acknowledged"),
        (CONTENT, False, "and others; it may still run what it had before"),
    ],
)
def test_delivery__refused_content__is_a_nack_also_after_the_stand_in_was_acknowledged(
    fallback: Content | None, sure: bool, says: str
) -> None:
    found = delivered(Serve(CONTENT, fallback), Reply.ACKED, refusal=Refusal("bad", AT, sure))

    assert (found.state, found.since) == (DeliveryState.NACKED, AT)
    assert says in found.sentence


def test_delivery__nothing_decided__is_requested_and_never_an_error() -> None:
    found = delivered(Undecided("no snapshot of this environment was loaded yet"))

    assert found.state is DeliveryState.REQUESTED
    assert "nothing can be sent yet" in found.sentence


def test_delivery__name_nobody_asked_for__is_not_subscribed() -> None:
    known = NameKnown("cluster", "pay", Serve(CONTENT, None), 18)

    assert delivery_of(known, None).state is DeliveryState.NOT_SUBSCRIBED


def test_delivery__revision_no_longer_known__is_not_numbered() -> None:
    assert delivered(Serve(CONTENT, None), revision=0).sentence == "Runs this version."
