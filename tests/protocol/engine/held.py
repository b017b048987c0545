"""Whether the server's word of what a client has is true of a model client (truth.md H1, H2)."""

from collections.abc import Mapping, Sequence

from adsserver.engine.events import Respond, Variant
from adsserver.engine.holdings import Holdings, with_unanswered
from tests.protocol.engine.half import Half
from tests.protocol.engine.model import ModelClient
from xdscore.decision import Serve
from xdscore.holdings import Holding, HoldingState
from xdscore.xdstp import glob_of


def held_by(client: ModelClient, half: Half) -> dict[str, Holding]:
    """What the server says that this client has of a type, by name."""
    said = client.session.holdings(half.kind)
    return _every_name(said) if said is not None else {}


def reported_by(client: ModelClient, half: Half) -> dict[str, Holding]:
    """What the shell was told that this client has of a type, by name, and sent since without an answer."""
    if half.kind not in client.reported:
        return {}
    said, unanswered = client.reported[half.kind]
    found = _every_name(said)
    for response in unanswered:
        changed = with_unanswered(found, response, tells=client.session.tells_errors)
        found = _held({**found, **changed})
    return found


def _every_name(said: Holdings) -> dict[str, Holding]:
    return _held({**dict(said.ground.everything()), **said.apart})


def _held(found: Mapping[str, Holding | None]) -> dict[str, Holding]:
    return {name: holding for name, holding in found.items() if holding is not None}


def check_holdings(client: ModelClient) -> None:
    """Compare the server's word about every name with what the client really has, whatever is on the way."""
    for half in client.halves.values():
        # A stale SotW request tells the server nothing (B3).
        if half.opened and (half.wish == (half.names, half.wildcard) or client.variant is Variant.DELTA):
            on_the_way = [response for response in client.in_flight if response.kind is half.kind]
            said = held_by(client, half)
            for name, holding in said.items():
                _check_one(client, half, name, holding, on_the_way)
            unsaid = {name for name in half.names if glob_of(name) is None} - said.keys()
            assert not unsaid, (half.kind.word, unsaid)
            if client.reads_errors:
                _check_nothing_is_lost(half, said, on_the_way)


def _check_one(client: ModelClient, half: Half, name: str, holding: Holding, on_the_way: Sequence[Respond]) -> None:
    where = (half.kind.word, name, holding, half.held.get(name), half.errors.get(name))
    sent = {m.content.version for response in on_the_way for m in response.resources if m.name == name}
    has = half.held.get(name, "")
    match holding.state:
        case HoldingState.ACKED:
            assert has == holding.version == holding.acked, where
        case HoldingState.SENT:
            assert holding.version in sent, where
            # What is sent once more although it was acknowledged is no news.
            assert half.acknowledged.get(name) != holding.version, where
        case HoldingState.NACKED:
            assert holding.version in half.rejected.get(name, ()), where
            assert holding.version in client.poison, where
            assert has != holding.version, where
        case HoldingState.ERROR_SENT:
            told = {error.text for response in on_the_way for error in response.errors if error.name == name}
            known = holding.message in {half.errors.get(name), *told}
            assert known or not client.reads_errors or name in half.in_refused, where
        case HoldingState.REQUESTED:
            assert not sent, where
        case HoldingState.UNKNOWN:
            # Or it is on its way to a client that asked for it anew meanwhile, or read by it, and told once more next.
            assert name in half.in_refused or sent or name in half.asked or half.asked_all, where
        case HoldingState.SILENT:
            raise AssertionError(where)
    if holding.acked and holding.state is not HoldingState.UNKNOWN and not client.drops_refused:
        assert has == holding.acked, where


def _check_nothing_is_lost(half: Half, said: dict[str, Holding], on_the_way: Sequence[Respond]) -> None:
    gone = {name for response in on_the_way for name in response.removed}
    # A member of a collection is told why it is gone, once, and then it is (F19).
    had = {name for name in half.held if half.covers(name) and name in half.ever_sent and name not in half.errors}
    lost = had - said.keys() - gone
    assert not lost, (half.kind.word, lost)


def check_holdings_at_rest(client: ModelClient) -> None:
    """Once every response is answered nothing is open: each name is acknowledged as published, refused, or in error."""
    for half in client.halves.values():
        assert reported_by(client, half) == held_by(client, half), half.kind.word
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
