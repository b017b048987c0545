"""While the database is away, what one brings pushes out nothing that others brought."""

from adsserver.store import fact_batches
from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import FactBatch
from tests.support.facts import NothingSecret, content, probed, respond, stream
from xdscore.limits import Limits


def test_pending__a_flood_of_one_while_nothing_could_be_written__others_keep_their_probes_and_streams() -> None:
    def away(_: FactBatch) -> None:
        raise OSError("gone")

    buffer = FactBuffer(write=away, limits=Limits(), contents=NothingSecret())

    def come_try_and_leave(number: int, identity: str) -> None:
        each, response = stream(number, identity=identity), respond(content(f"c{number}"))
        buffer.opened(each)
        buffer.sent(each, response)
        buffer.learnt(each, probed(response))
        buffer.closed(each, "left")

    for number in range(3):
        come_try_and_leave(number, f"spiffe://demo/{number}")
    for number in range(3, fact_batches.MAX_GONE + 50):
        come_try_and_leave(number, "spiffe://demo/mad")
    buffer._take()
    buffer._flush()

    pending = buffer._pending
    others = {f"id spiffe://demo/{number}" for number in range(3)}
    assert {each.accountable for each in pending._probes.values()} >= others
    assert {each.accountable for each in pending._opened.values()} >= others
    assert len(pending._probes) <= fact_batches.MAX_PROBES
    assert len(pending._opened) <= fact_batches.MAX_GONE
