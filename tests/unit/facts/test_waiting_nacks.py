"""NACKs that wait to be written: whoever sends most gives way, and nobody waits for a flood."""

from collections import Counter

from adsserver.store.opened import Opened
from adsserver.store.waiting_nacks import RawNack, WaitingNacks
from tests.support.facts import content, stream
from xdscore.evidence import Evidence
from xdscore.resource_types import CLUSTER

MAD, QUIET = (Opened(stream(number, identity=identity), 0.0) for number, identity in ((1, "mad"), (2, "quiet")))


def refusal(of: Opened, text: str) -> RawNack:
    held = (content("pay"),)
    return RawNack(of, CLUSTER, "v1", 13, text, held, held, 0.0, Evidence.ONLY_CHANGE)


def told(refusals: WaitingNacks[RawNack]) -> list[str]:
    return [each.message for each in refusals]


def test_refusals__a_flood_of_one_identity__costs_it_its_own_oldest_and_nobody_waits_for_it() -> None:
    refusals: WaitingNacks[RawNack] = WaitingNacks(10)
    dropped = refusals.add(refusal(QUIET, "first"))
    dropped += sum(refusals.add(refusal(MAD, f"mad {number}")) for number in range(100))
    dropped += refusals.add(refusal(QUIET, "second"))

    assert told(refusals) == ["first", "mad 92", "second", *(f"mad {at}" for at in range(93, 100))]
    assert dropped == 92
    assert len(refusals) == 10


def test_refusals__more_who_send_than_there_is_room__each_keeps_about_as_many() -> None:
    refusals: WaitingNacks[RawNack] = WaitingNacks(100)
    senders = [Opened(stream(number, identity=f"id-{number}"), 0.0) for number in range(7)]
    for number in range(60):
        for at, sender in enumerate(senders):
            if number < 5 * (at + 1):
                refusals.add(refusal(sender, f"{at} {number}"))

    kept = Counter(each.opened.accountable for each in refusals)

    assert sorted(kept.values()) == [5, 10, 15, 17, 17, 18, 18]


def test_refusals__repeats_of_one_that_waits__are_counted_and_take_no_room() -> None:
    refusals: WaitingNacks[RawNack] = WaitingNacks(2)
    for _ in range(5):
        assert refusals.add(refusal(MAD, "again")) == 0

    (only,) = refusals
    assert only.repeats == 5


def test_refusals__written__are_forgotten_in_the_order_they_were_handed_out() -> None:
    refusals: WaitingNacks[RawNack] = WaitingNacks(10)
    for number in range(3):
        refusals.add(refusal(MAD, f"mad {number}"))
    refusals.add(refusal(QUIET, "quiet"))

    refusals.forget(2)

    assert told(refusals) == ["mad 1", "mad 2"]
    refusals.forget(2)
    assert (len(refusals), told(refusals), refusals.add(refusal(MAD, "new"))) == (0, [], 0)
