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
    """A connected client that asks for the name; `look` is a key of `states.LOOKS`."""

    asker: Asker
    url: str
    look: str


@dataclass(frozen=True, slots=True)
class WhoAsks:
    """The part of the page about the clients that ask for the name. `depends`: there is no one answer; `sentence` then
    stands in the answer's place.

    `told` is the sentence that `named` belong to: those who are told the code of the pasted text or, without one, any.
    """

    depends: bool = False
    sentence: str = ""
    told: str = ""
    named: tuple[AskerLine, ...] = ()
    unnamed: int = 0
    lines: tuple[AskerLine, ...] = field(default=())
    count: int = 0


def who_asks(found: Askers, question: Question, ladder: Ladder, code: str, urls: Mapping[str, str]) -> WhoAsks:
    """The page's part about these clients. `code` is the one in a pasted text, if there was one; `urls` lead to the
    answer for each client.
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
    """What a client whom the rules allow the name gets instead of the resource, as a sentence; empty where it gets the
    resource.
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
    """The key of the look of the answer."""
    return "depends" if who.depends else {Has.YES: "yes", Has.NO: "no", Has.UNKNOWN: "unknown"}[ladder.has]
