"""What the page of Explain says where no client is named: whether it depends on who asks, and who does ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.explain.askers import Asker, Askers
from controlplane.explain.values import Has, Ladder, Question, RungState

_MAX_NAMED: Final = 10
_MAX_LISTED: Final = 50
_EXISTS: Final = 4
_LOOKS: Final = {"": "served_it", "XDS2103": "denied"}


@dataclass(frozen=True, slots=True)
class AskerLine:
    """A connected client that asks for the name. `url`: the explanation for this client; `look`: the key in
    `states.LOOKS` of its badge.
    """

    asker: Asker
    url: str
    look: str


@dataclass(frozen=True, slots=True)
class WhoAsks:
    """The part of Explain's page about the clients that ask for the name, where the question names no client.

    `depends`: clients are answered differently; `sentence` then says by what, in place of one answer.
    `told`: a sentence about the clients in `named` and `unnamed` (a number): those that are told the code in the pasted
    text or, without one, that they cannot have the name.
    `lines`, `count`: the first clients that ask for the name, and how many do.
    """

    depends: bool = False
    sentence: str = ""
    told: str = ""
    named: tuple[AskerLine, ...] = ()
    unnamed: int = 0
    lines: tuple[AskerLine, ...] = field(default=())
    count: int = 0


def who_asks(found: Askers, question: Question, ladder: Ladder, code: str, urls: Mapping[str, str]) -> WhoAsks:
    """The part of Explain's page about these clients. `ladder`: the answer to the question; `code`: the one in the
    pasted text, empty without one; `urls`: for each client's id, the explanation for it.
    """
    lines = tuple(
        AskerLine(each, urls[each.id], _LOOKS.get(each.code, "asks_in_vain")) for each in found.clients[:_MAX_LISTED]
    )
    hearing = found.told(code)
    ids = {each.id for each in hearing[:_MAX_NAMED]}
    named = tuple(line for line in lines if line.asker.id in ids)
    apart, subject = found.depends, f"{question.kind.title} '{question.name}'"
    there = next(rung.state for rung in ladder.rungs if rung.number == _EXISTS) is not RungState.FAIL
    sentence = f"{found.rules_sentence(subject, question.environment)} {_otherwise(ladder)}".strip() if apart else ""
    speaks = apart or bool(code) or bool(hearing)
    return WhoAsks(
        depends=apart and there,
        sentence=sentence,
        told=_told(len(hearing), code, refusals=bool(found.clients)) if speaks else "",
        named=named,
        unnamed=len(hearing) - len(named) if speaks else 0,
        lines=lines,
        count=len(found.clients),
    )


def _otherwise(ladder: Ladder) -> str:
    """A sentence that says what clients get whom the rules allow the name, where they do not get the resource; empty
    where they do.
    """
    exists = next(rung for rung in ladder.rungs if rung.number == _EXISTS)
    return exists.text if exists.state is not RungState.OK else ""


def _told(count: int, code: str, *, refusals: bool) -> str:
    what = f"[{code}]" if code else "so"
    if count:
        one = count == 1
        return f"{count} connected client{'' if one else 's'} {'is' if one else 'are'} told {what}:"
    if code:
        return f"The text says {code}. No connected client is told so of this name now."
    return "No connected client is refused it now." if refusals else "No connected client asks for it by name now."


def verdict_key(who: WhoAsks, ladder: Ladder) -> str:
    """The key in `states.LOOKS` of the answer's badge."""
    return "depends" if who.depends else {Has.YES: "yes", Has.NO: "no", Has.UNKNOWN: "unknown"}[ladder.has]
