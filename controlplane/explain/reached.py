"""The last three rungs: what a client was sent, what it answered, and what it runs now (truth.md H1, H4). Pure.

All follow from what it has of the name (`Held`). A client that was sent an answer has the published content or has it
not; only a response that it refused for one of several resources leaves that open until they were sent apart.
"""

from controlplane.explain.values import ClientSide, Held, NameFacts, Rung, RungState, clock
from xdscore.after_nack import NowRuns
from xdscore.decision import Serve, Undecided, Withheld
from xdscore.holdings import HoldingState
from xdscore.snapshot import ttl_text

_Said = tuple[RungState, str]
_NOT_SAID_YET = "Its streams did not say yet what they were sent; they do within two seconds."


def sent_rung(name: NameFacts, client: ClientSide) -> Rung:
    """Whether the client was sent the published content of the name, which it asks for."""
    return Rung(6, "sent", *_sent(name, client.held))


def _sent(name: NameFacts, held: Held | None) -> _Said:
    if held is None:
        return RungState.UNKNOWN, _NOT_SAID_YET
    if held.state is HoldingState.UNKNOWN:
        return RungState.UNKNOWN, held.message
    if held.state is HoldingState.REQUESTED and not held.others:
        return RungState.UNKNOWN, f"It asked for it{_since(held)}, and was sent nothing of it yet."
    if isinstance(name.decision, Serve) and held.version == name.decision.content.version:
        return RungState.OK, f"{_published(name)} was sent to it."
    return RungState.FAIL, f"{_published(name)} was not sent to it yet{_instead(held)}."


def _instead(held: Held) -> str:
    match held.state:
        case HoldingState.ACKED:
            return f"; it runs {held.acked}{_since(held)}"
        case HoldingState.ERROR_SENT | HoldingState.SILENT:
            return f"; it was told that it cannot have it{_since(held)}"
        case HoldingState.REQUESTED:
            return "; it was sent others of its type"
        case _:
            return "; what it was sent before is not settled"


def answered_rung(name: NameFacts, client: ClientSide) -> Rung:
    """What the client said to the published content of the name."""
    return Rung(7, "answered", *_answered(name, client))


def _answered(name: NameFacts, client: ClientSide) -> _Said:
    held, refusal = client.held, client.refusal
    words = ""
    if refusal is not None:
        # An Envoy that polls cannot say why.
        words = f" at {clock(refusal.at)}" + (f": {refusal.text}" if refusal.text else ", without words.")
    match held:
        case Held(state=HoldingState.ACKED):
            return RungState.OK, f"It acknowledged what it runs{_at(held)}."
        case Held(state=HoldingState.NACKED):
            return RungState.FAIL, f"It refused this content{words or f': {held.message}'}"
        case Held(state=HoldingState.SENT):
            goes_on = f"; it goes on with {held.acked}" if held.acked else ""
            return RungState.FAIL, f"It has not answered {_published(name)}, sent{_at(held)}, yet{goes_on}."
        case Held(state=HoldingState.UNKNOWN) if words:
            return RungState.UNKNOWN, f"It refused a response with this and others in it{words}"
        case _:
            return RungState.UNKNOWN, "There was nothing to answer yet."


def now_rung(name: NameFacts, client: ClientSide) -> Rung:
    """What the client runs now."""
    return Rung(8, "now", *_now(name, client))


def _now(name: NameFacts, client: ClientSide) -> _Said:
    if not client.connected and (runs_out := _runs_out(name)):
        return RungState.UNKNOWN, f"{runs_out} Whether it is one of them cannot be seen."
    if not client.connected:
        return RungState.UNKNOWN, "Clients keep what they have while nobody is connected; this cannot be seen."
    if isinstance(name.decision, Serve):
        return _runs(name, client)
    if isinstance(name.decision, Undecided | Withheld):
        return RungState.UNKNOWN, "It keeps a copy, if it had one; this cannot be seen."
    return RungState.UNKNOWN, _belief(client.family)


def _runs(name: NameFacts, client: ClientSide) -> _Said:
    held, refusal = client.held, client.refusal
    if held is None or held.state is HoldingState.UNKNOWN:
        return RungState.UNKNOWN, "Only its own admin interface can tell."
    if held.state is HoldingState.NACKED and refusal is not None and refusal.now is not None:
        return _after_refusal(refusal.now, name)
    if held.unused:
        return RungState.OK, held.unused
    if held.acked:
        runs_out = _runs_out(name)
        return RungState.OK, f"It runs {held.acked}.{' ' if runs_out else ''}{runs_out}"
    return RungState.OK, "It was given nothing of it on this stream that it took."


def _runs_out(name: NameFacts) -> str:
    """A sentence about the ttl of the published content; empty where it has none."""
    ttl_ms = name.decision.content.ttl_ms if isinstance(name.decision, Serve) else 0
    if not ttl_ms:
        return ""
    return (
        f"It has a ttl of {ttl_text(ttl_ms)}: it is renewed while a stream lives, and clients that read ttls drop "
        "it so long after the last renewal."
    )


def _after_refusal(now: NowRuns, name: NameFacts) -> _Said:
    if now.sure:
        return RungState.OK, f"It {now}."
    instead = (
        f" r{name.fallback.number}, the last revision that clients proved good, is sent in its place."
        if name.fallback is not None
        else ""
    )
    return RungState.UNKNOWN, f"It {now}.{instead}"


def _belief(family: str) -> str:
    """A sentence about how a client of this family probably behaves without a resource (A88, texts.md F1 and F3)."""
    if family.startswith("grpc"):
        return (
            "It fails with our sentence where it reads resource_errors, else with 'does not exist' after 15 s; "
            "whether a copy is kept depends on fail_on_data_errors. Neither can be seen from here."
        )
    return "It keeps or drops a copy by its own rules; this cannot be seen from here."


def headline_of(name: NameFacts, client: ClientSide | None) -> str:
    """A headline that says which revision the client has in place of the published one, which it certainly refused.
    Empty where it did not, or where the catalogue does not know one of the two revisions.
    """
    if client is None or client.held is None or name.served is None:
        return ""
    held, refused = client.held, f"r{name.served.number}"
    if held.state is not HoldingState.NACKED:
        return ""
    if client.refusal is not None and client.refusal.now is not None:
        return f"It refused {refused} and {client.refusal.now}"
    if held.acked_revision:
        return f"It runs r{held.acked_revision} and refused {refused}"
    # A stream is not sent again what it refused (decisions D13).
    return f"It refused {refused} and is offered r{name.fallback.number}" if name.fallback is not None else ""


def _published(name: NameFacts) -> str:
    return f"r{name.served.number}" if name.served is not None else "The published content"


def _since(held: Held) -> str:
    return f" since {clock(held.since)}" if held.since is not None else ""


def _at(held: Held) -> str:
    return f" at {clock(held.since)}" if held.since is not None else ""
