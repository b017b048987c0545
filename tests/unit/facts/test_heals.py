"""What is written of a client that is sent again what it had before it refused something (B11, F17a)."""

from dataclasses import replace

from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import FactBatch, SubscriptionState, unpack_contents
from tests.support.facts import acknowledged, content, rejected, respond, stream
from xdscore.limits import Limits


def test_heal__acknowledged__proves_nothing_and_the_type_stays_refused() -> None:
    batches: list[FactBatch] = []
    buffer = FactBuffer(write=batches.append, clock=lambda: 100.0, limits=Limits())
    one, before, bad = stream(), content("a", "v1"), content("a", "v2")
    refused, healed = respond(bad, nonce="2", version="w2"), respond(before, nonce="3", version="w1")
    buffer.opened(one)
    buffer.sent(one, refused)
    buffer.learnt(one, replace(rejected(refused), kept=(before,), healing=True))
    buffer.sent(one, healed)
    buffer.learnt(one, replace(acknowledged(healed), heal=True))

    buffer._take()
    buffer._flush()

    (batch,) = batches
    (nack,) = batch.nacks
    lists = {each.id: unpack_contents(each.packed) for each in batch.content_lists}
    assert (lists[nack.kept], nack.healing) == ((("a", "v1"),), True)
    assert batch.subscriptions[0].says.state is SubscriptionState.NACKED
    assert batch.proven == ()
