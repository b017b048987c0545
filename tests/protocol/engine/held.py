"""Whether the server's word of what a client has is true of a model client (truth.md H1, H2)."""

from adsserver.engine.events import Variant
from tests.protocol.engine.checks import Half
from tests.protocol.engine.model import ModelClient
from xdscore.decision import Serve
from xdscore.holdings import Holding, HoldingState
from xdscore.xdstp import glob_of


def held_by(client: ModelClient, half: Half) -> dict[str, Holding]:
    """What the server says that this client has of a type, by name."""
    said = client.session.holdings(half.kind)
    if said is None:
        return {}
    everything: dict[str, Holding | None] = {**dict(said.ground.everything()), **said.apart}
    return {name: holding for name, holding in everything.items() if holding is not None}


def check_holdings(client: ModelClient) -> None:
    """Compare the server's word about every name with what the client really has, whatever is on the way."""
    for half in client.halves.values():
        if half.opened and (half.wish == (half.names, half.wildcard) or client.variant is Variant.DELTA):
            _check_half(client, half)


def _check_half(client: ModelClient, half: Half) -> None:
    on_the_way = [response for response in client.in_flight if response.kind is half.kind]
    said = held_by(client, half)
    for name, holding in said.items():
        where = (half.kind.word, name, holding, half.held.get(name), half.errors.get(name))
        sent = {m.content.version for response in on_the_way for m in response.resources if m.name == name}
        has = half.held.get(name, "")
        if name in half.names and glob_of(name) is None:
            assert half.covers(name), where
        match holding.state:
            case HoldingState.ACKED:
                assert has == holding.version == holding.acked, where
            case HoldingState.SENT:
                assert holding.version in sent, where
            case HoldingState.NACKED:
                assert holding.version in half.rejected.get(name, ()), where
                assert has != holding.version, where
            case HoldingState.ERROR_SENT:
                # From before TP3 or not: what it was sent is the same.
                told = {e.text for response in on_the_way for e in response.errors if e.name == name}
                assert (
                    not client.reads_errors
                    or name in half.in_refused
                    or holding.message in {half.errors.get(name), *told}
                ), where
            case HoldingState.SILENT:
                raise AssertionError(where)
            case HoldingState.REQUESTED:
                assert not sent, where
            case HoldingState.UNKNOWN:
                assert name in half.in_refused, where
        if holding.acked and holding.state is not HoldingState.UNKNOWN and not client.drops_refused:
            assert has == holding.acked, where
    unsaid = {name for name in half.names if glob_of(name) is None} - said.keys()
    assert not unsaid, (half.kind.word, unsaid)
    gone = {name for response in on_the_way for name in response.removed}
    lost = {name for name in half.held if half.covers(name) and name in half.ever_sent} - said.keys() - gone
    assert not lost, (half.kind.word, lost)


def check_holdings_at_rest(client: ModelClient) -> None:
    """Once every response is answered nothing is open: each name is acknowledged as published, refused, or in error."""
    for half in client.halves.values():
        for name, holding in held_by(client, half).items():
            where = (half.kind.word, name, holding)
            decision = client.decision(half.kind, name)
            published = decision.content.version if isinstance(decision, Serve) else ""
            assert holding.state not in {HoldingState.SENT, HoldingState.UNKNOWN}, where
            if holding.state is HoldingState.NACKED:
                assert holding.version == published, where
                assert holding.version in client.poison, where
            elif holding.state is HoldingState.ACKED and published:
                assert holding.version == published, where
