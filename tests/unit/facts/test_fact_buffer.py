"""The buffer between streams and the database.

Last state wins, everything is bounded, nothing is lost while it is away.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, OperationalError

from adsserver.store import fact_batches, remembered
from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import MAX_BATCH_KEYS, FactBatch, SubscriptionState, unpack_contents, unpack_names
from tests.support.facts import (
    Clock,
    Database,
    NothingSecret,
    acknowledged,
    content,
    flush,
    rejected,
    respond,
    send,
    stream,
    subscribed,
)
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, LISTENER, SECRET

MAX_NACKS = Limits().nacks_waiting


def buffer_of(database: Callable[[FactBatch], None], clock: Clock) -> FactBuffer:
    return FactBuffer(write=database, clock=clock, limits=Limits(), contents=NothingSecret())


@pytest.mark.parametrize("limit", [1, 2])
def test_sent__more_than_a_client_can_still_answer__the_newest_are_kept(limit: int) -> None:
    limits = Limits(unanswered_responses=limit)
    buffer = FactBuffer(write=Database(), clock=Clock(), limits=limits, contents=NothingSecret())
    responses = [respond(content("a"), nonce=str(number)) for number in range(4)]
    buffer.opened(stream())

    for response in responses:
        buffer.sent(stream(), response)

    known = buffer._streams[stream().id].substream(CLUSTER.word)
    assert known.unanswered == tuple(responses[-limit:])


def test_facts__several_about_one_type__the_last_state_is_written_once() -> None:
    database, clock = Database(), Clock()
    buffer = buffer_of(database, clock)
    one, response = stream(), respond(content("a"), version="w7")
    buffer.opened(one)
    buffer.learnt(one, subscribed("a", "b"))
    buffer.sent(one, response)
    clock.now += 2
    buffer.learnt(one, acknowledged(response))
    clock.now += 3

    flush(buffer)

    (batch,) = database.batches
    (written,) = batch.subscriptions
    assert (written.says.state, written.says.sent, written.says.acked) == (SubscriptionState.ACKED, "w7", "w7")
    assert (written.sent_age_s, written.acked_age_s) == (5, 3)
    (names,) = batch.name_sets
    assert (written.says.names, unpack_names(names.packed)) == (names.id, ("a", "b"))
    assert [each.id for each in batch.streams] == [one.id]
    assert [(each.node_id, each.family.value) for each in batch.clients] == [("node-1", "envoy")]


def test_facts__nothing_new_after_a_flush__nothing_is_written_but_a_heartbeat_in_time() -> None:
    database, clock = Database(), Clock()
    buffer = buffer_of(database, clock)
    buffer.opened(stream())
    flush(buffer)

    clock.now += 4
    flush(buffer)
    assert len(database.batches) == 1
    clock.now += 1
    flush(buffer)

    assert len(database.batches) == 2
    assert database.batches[1].keys == 0


def test_sent__answer_may_be_on_its_way__is_written_with_it_or_after_half_a_second() -> None:
    database, clock = Database(), Clock()
    buffer = buffer_of(database, clock)
    quick, slow, response = stream(1), stream(2), respond(content("a"))
    send(buffer, response, quick, slow)
    written = []
    for seconds in (0.25, 0.2, 0.05):
        clock.now += seconds
        flush(buffer)
        written.append(database.all_subscriptions)
        buffer.learnt(quick, acknowledged(response))

    acked = {(quick.id, "cluster"): SubscriptionState.ACKED}
    assert written == [{}, acked, {**acked, (slow.id, "cluster"): SubscriptionState.SENT}]


def test_sent__somebody_refuses__who_was_sent_the_same_is_written_at_once() -> None:
    database, clock = Database(), Clock()
    buffer = buffer_of(database, clock)
    other, slow, response = stream(1), stream(2), respond(content("a"))
    send(buffer, response, other, slow)
    buffer.learnt(other, rejected(response))

    flush(buffer)

    states = {stream: state for (stream, _), state in database.all_subscriptions.items()}
    assert states == {other.id: SubscriptionState.NACKED, slow.id: SubscriptionState.SENT}


def test_acknowledged__answer_to_an_older_response__type_stays_sent() -> None:
    database, clock = Database(), Clock()
    buffer = buffer_of(database, clock)
    one, old, new = stream(), respond(nonce="1", version="w1"), respond(nonce="2", version="w2")
    buffer.opened(one)
    buffer.sent(one, old)
    buffer.sent(one, new)
    buffer.learnt(one, acknowledged(old))
    clock.now += 1

    flush(buffer)

    (written,) = database.batches[0].subscriptions
    assert (written.says.state, written.says.sent, written.says.acked) == (SubscriptionState.SENT, "w2", "w1")


def test_facts__of_a_stream_that_is_closed_or_was_never_opened__are_ignored() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    gone, unknown = stream(1), stream(2)
    buffer.opened(gone)
    buffer.closed(gone, "client left")

    buffer.sent(gone, respond())
    buffer.learnt(unknown, subscribed("a"))
    buffer.closed(unknown, "again")
    flush(buffer)

    (batch,) = database.batches
    assert batch.subscriptions == ()
    assert [(end.id, end.cause) for end in batch.ends] == [(gone.id, "client left")]


def test_proven__same_tuple_by_a_thousand_clients__contents_are_looked_at_once() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    response = respond(*(content(f"c{number}") for number in range(100)))
    streams = [stream(number) for number in range(1_000)]
    for each in streams:
        buffer.opened(each)
        buffer.sent(each, response)
        buffer.learnt(each, acknowledged(response))

    assert len(buffer._learnt.acknowledged) == 1
    flush(buffer)

    assert sum(len(batch.proven) for batch in database.batches) == 100


def test_proven__a_return_to_earlier_content__is_reported_again() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    one = stream()
    buffer.opened(one)
    for nonce, version in enumerate(("v1", "v2", "v1"), start=1):
        response = respond(content("a", version), content("b"), nonce=str(nonce))
        buffer.sent(one, response)
        buffer.learnt(one, acknowledged(response))
        flush(buffer)

    reported = [[(each.name, each.version) for each in batch.proven] for batch in database.batches]
    assert reported == [[("a", "v1"), ("b", "v1")], [("a", "v2")], [("a", "v1")]]


def test_rejected__kept_with_what_it_was_about__and_repeats_are_counted() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    one, bad = stream(), content("bad")
    response = respond(content("good"), bad, version="w9")
    buffer.opened(one)
    buffer.sent(one, response)
    for _ in range(3):
        buffer.learnt(one, rejected(response, "bad: no\x00\x1b[31m", suspects=(bad,)))

    flush(buffer)

    (batch,) = database.batches
    (nack,) = batch.nacks
    assert (nack.version, nack.code, nack.repeats, nack.text) == ("w9", 13, 3, "bad: no\\x00\\x1b[31m")
    lists = {each.id: unpack_contents(each.packed) for each in batch.content_lists}
    assert lists[nack.resources] == (("good", "v1"), ("bad", "v1"))
    assert lists[nack.suspects] == (("bad", "v1"),)
    assert batch.subscriptions[0].says.state is SubscriptionState.NACKED


def test_rejected__text_of_a_megabyte__is_not_held_and_marked_as_cut() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    one, response = stream(), respond(content("a"))
    buffer.opened(one)

    buffer.learnt(one, rejected(response, "x" * 1_000_000))

    assert len(next(iter(buffer._learnt.nacks)).message) <= 2 * 4096 + 1
    flush(buffer)
    text = database.batches[0].nacks[0].text
    assert len(text.encode()) == 4096
    assert text.endswith("...(truncated)")


def test_rejected__of_a_secret__no_quoted_value_is_kept() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    one, response = stream(), respond(content("tls"), kind=SECRET)
    buffer.opened(one)

    buffer.learnt(one, rejected(response, 'bad secret name: "tls" key: "CANARY\\"42'))
    flush(buffer)

    assert "CANARY" not in database.batches[0].nacks[0].text


def test_rejected__more_than_the_ring_holds__oldest_give_way_and_are_counted() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    one, response = stream(), respond(content("a"))
    buffer.opened(one)
    for number in range(MAX_NACKS + 5):
        buffer.learnt(one, rejected(response, f"no {number}"))

    flush(buffer)

    texts = [nack.text for batch in database.batches for nack in batch.nacks]
    assert (len(texts), texts[0]) == (MAX_NACKS, "no 5")
    assert buffer.status().nacks_dropped == 5
    assert database.batches[-1].replica.nacks_dropped == 5


def test_rejected__a_flood_of_one_identity_while_nothing_is_written__others_keep_theirs_and_are_written_first() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    quiet, mad, response = stream(1, identity="quiet"), stream(2, identity="mad"), respond(content("a"))
    buffer.opened(quiet)
    buffer.opened(mad)
    buffer.learnt(quiet, rejected(response, "quiet"))
    for number in range(MAX_NACKS + 5):
        buffer.learnt(mad, rejected(response, f"mad {number}"))
        if number == MAX_NACKS // 2:
            buffer._take()  # the database is away

    flush(buffer)

    texts = [nack.text for batch in database.batches for nack in batch.nacks]
    assert "quiet" in texts[:2]
    assert len(texts) == MAX_NACKS
    assert {nack.accountable for batch in database.batches for nack in batch.nacks} == {"id quiet", "id mad"}


def test_flush__more_than_one_batch__streams_come_before_what_refers_to_them() -> None:
    database = Database()
    buffer = buffer_of(database, Clock())
    for number in range(3_000):
        buffer.opened(stream(number))
        buffer.learnt(stream(number), subscribed("a"))

    flush(buffer)

    assert all(batch.keys <= MAX_BATCH_KEYS for batch in database.batches)
    known: set[str] = set()
    for batch in database.batches:
        known |= {each.id for each in batch.streams}
        assert {each.stream for each in batch.subscriptions} <= known
    assert len(database.all_subscriptions) == 3_000


def test_flush__database_away__states_are_kept_and_tried_again_with_growing_pauses() -> None:
    database, clock = Database(failure=OperationalError("gone")), Clock()
    buffer = buffer_of(database, clock)
    one, response = stream(), respond(content("a"))
    buffer.opened(one)
    flush(buffer)
    pauses = []
    for _ in range(7):
        pauses.append(buffer._next_try_at - clock.now)
        clock.now = buffer._next_try_at - 0.001
        flush(buffer)  # too early: nothing is tried
        clock.now = buffer._next_try_at
        flush(buffer)
    buffer.sent(one, response)
    tried, database.failure = database.tried, None
    clock.now = buffer._next_try_at

    flush(buffer)

    assert (tried, pauses) == (8, [1, 2, 4, 8, 16, 30, 30])
    assert database.batches[0].streams[0].id == one.id
    assert database.all_subscriptions == {(one.id, "cluster"): SubscriptionState.SENT}


def test_status__failing_for_longer_than_ten_seconds__says_since_when() -> None:
    database = Database(failure=OperationalError("gone"))
    buffer = buffer_of(database, Clock())
    buffer.opened(stream())
    flush(buffer)
    assert buffer.status().detail == ""

    buffer._failing_since = datetime.now(UTC) - timedelta(seconds=11)

    status = buffer.status()
    assert status.missing_since is not None
    assert status.detail == f"facts since {status.missing_since:%H:%M:%S} UTC are missing"


def test_flush__one_fact_the_database_will_never_take__is_found_and_holds_up_no_other() -> None:
    taken: set[str] = set()

    def write(batch: FactBatch) -> None:
        ids = {each.id for each in batch.streams}
        if stream(77).id in ids:
            raise IntegrityError("no")
        taken.update(ids)

    clock = Clock()
    buffer = buffer_of(write, clock)
    for number in range(200):
        buffer.opened(stream(number))

    for _ in range(40):
        clock.now = max(clock.now, buffer._next_try_at)
        flush(buffer)

    assert taken == {stream(number).id for number in range(200)} - {stream(77).id}
    assert buffer.status().missing_since is None


def test_flush__after_a_silence_in_which_streams_were_taken_for_dead__reports_all_open_ones_again() -> None:
    database, clock = Database(), Clock()
    buffer = buffer_of(database, clock)
    kept, left = stream(1), stream(2)
    send(buffer, respond(), kept, left)
    clock.now += 1
    flush(buffer)
    database.failure = OperationalError("gone")
    clock.now += 4
    flush(buffer)
    buffer.closed(left, "client left")
    database.failure = None
    clock.now += 25

    flush(buffer)

    again = database.batches[1]
    assert [each.id for each in again.streams] == [kept.id]
    assert [(each.stream, each.says.state) for each in again.subscriptions] == [(kept.id, SubscriptionState.SENT)]
    assert [each.id for each in again.ends] == [left.id]


def test_pending__streams_that_came_and_went_while_nothing_could_be_written__are_bounded() -> None:
    database, clock = Database(failure=OperationalError("gone")), Clock()
    buffer = buffer_of(database, clock)
    for number in range(fact_batches.MAX_GONE + 50):
        buffer.opened(stream(number))
        buffer.learnt(stream(number), subscribed("a", kind=LISTENER))
        buffer.closed(stream(number), "left")

    flush(buffer)

    pending = buffer._pending
    sizes = {len(pending._opened), len(pending._ended), len(pending._substreams)}
    assert (sizes, pending.streams_dropped) == ({fact_batches.MAX_GONE}, 50)


def test_remembered_responses__beyond_their_members__oldest_are_forgotten() -> None:
    known = remembered.RememberedResponses()
    half = remembered._MAX_REMEMBERED_MEMBERS // 2
    tuples = [tuple(content(f"{which}") for _ in range(half)) for which in range(3)]

    answers = [known.is_new("default", each) for each in tuples]

    assert answers == [True, True, True]
    assert known.is_new("default", tuples[2]) is False
    assert known.is_new("default", tuples[0]) is True
