"""What a write would take from connected clients, for whoever looks; and the questions asked before it is done.

A loss may be of clients of several environments: who looks reads of those alone that they may see.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from django.http import QueryDict

from controlplane.accounts.principal import Principal
from controlplane.catalog.freezes import Frozen
from controlplane.catalog.guarding import MAX_BREAK_REASON_CHARS, CasesBroken, Consent, Loser, Loss, LostName
from xdscore.findings import Finding

ACCEPTS: Final = "accept_loss"
ASKED: Final = "asked_loss"
BREAKS: Final = "break_glass"
ACCEPTS_CASES: Final = "accept_cases"
ASKED_CASES: Final = "asked_cases"
_SHOWN: Final = 5  # names and clients; the rest is behind a click
_MAX_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class LossShown:
    """What clients would lose by a write, for one reader: `who` and `names` are only those that the reader may see."""

    loss: Loss
    who: tuple[Loser, ...]
    names: tuple[LostName, ...]

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """The kinds of the clients that would lose something, each with how many; the largest number first."""
        return tuple(sorted(self.loss.kinds.items(), key=lambda kind: (-kind[1], kind[0])))

    @property
    def first_names(self) -> tuple[LostName, ...]:
        """The names to show at once."""
        return self.names[:_SHOWN]

    @property
    def other_names(self) -> tuple[LostName, ...]:
        """The names to show after a click."""
        return self.names[_SHOWN:]

    @property
    def more_names(self) -> bool:
        """Whether there are names that are not shown at all, not even after a click."""
        return self.loss.truncated or len(self.names) < len(self.loss.names)

    @property
    def first_who(self) -> tuple[Loser, ...]:
        """The clients to show by name."""
        return self.who[:_SHOWN]

    @property
    def more_clients(self) -> int:
        """How many clients would lose something and are not shown by name."""
        return self.loss.clients - len(self.first_who)

    @property
    def certain(self) -> int:
        """How many clients would lose something for certain."""
        return self.loss.clients - self.loss.doubtful


def loss_shown(loss: Loss, principal: Principal) -> LossShown:
    """The loss as this principal may read it: without clients and names in environments they may not see."""
    seen = loss.seen_by(principal)
    return LossShown(loss, seen.who, seen.names)


def consent_of(given: QueryDict, why: str) -> Consent:
    """What somebody takes upon themselves with a form: a loss, to break a freeze, and to break route cases. For a loss
    they have to have typed the number of clients that they were asked about and, where the form has a field for a
    reason (`why`: its name), a reason; for cases, the number of cases; otherwise none is accepted.
    """
    cases = _number(given, ACCEPTS_CASES) if _number(given, ACCEPTS_CASES) == _number(given, ASKED_CASES) else 0
    broken = given.get(BREAKS, "").strip()
    if len(broken) > MAX_BREAK_REASON_CHARS or not broken.isprintable():
        broken = ""  # the form takes no such reason: it is asked for again
    if not _is_answered(given) or (why and not given.get(why, "").strip()):
        return Consent(break_glass=broken, accept_cases=cases)
    return Consent(accept_loss=_number(given, ACCEPTS), break_glass=broken, accept_cases=cases)


@dataclass(frozen=True, slots=True)
class FreezeQuestion:
    """The question whether the writer breaks a freeze. `fields`: the fields of the form that led here, to be sent again
    with the answer.
    """

    frozen: Frozen
    fields: tuple[tuple[str, str], ...]


def freeze_question_of(frozen: Frozen, given: QueryDict) -> FreezeQuestion:
    """The question whether the writer breaks this freeze. `given`: the form that they sent."""
    return FreezeQuestion(frozen, repeated(given, without=(BREAKS,)))


@dataclass(frozen=True, slots=True)
class CasesQuestion:
    """The question whether the writer breaks `broken` route cases, which `findings` name. `fields`: the fields of the
    form that led here, to be sent again with the answer. `problem`: why an earlier answer did not count; empty where
    there was none.
    """

    broken: int
    findings: tuple[Finding, ...]
    fields: tuple[tuple[str, str], ...]
    problem: str


def cases_question_of(error: CasesBroken, given: QueryDict) -> CasesQuestion:
    """The question whether the writer breaks these cases. `given`: the form that they sent."""
    typed = given.get(ACCEPTS_CASES, "").strip()
    problem = f"'{typed[:20]}' is not the number of cases. Nothing was changed." if ASKED_CASES in given else ""
    fields = repeated(given, without=(ACCEPTS_CASES, ASKED_CASES))
    return CasesQuestion(error.broken, error.findings, fields, problem)


@dataclass(frozen=True, slots=True)
class Question:
    """The question whether the writer accepts what clients would lose.

    `fields`: the fields of the form that led here, to be sent again with the answer.
    `problem`: why an earlier answer did not count, as a sentence; empty where there was none.
    `why`, `reason`: the name of the field for the reason, and what is in it; empty where the form has none.
    """

    shown: LossShown
    fields: tuple[tuple[str, str], ...]
    problem: str
    why: str
    reason: str


def question_of(loss: Loss, principal: Principal, given: QueryDict, *, why: str) -> Question:
    """The question whether the writer accepts this loss. `given`: the form that they sent; `why`: the name of its field
    for a reason, empty without one.
    """
    return Question(
        loss_shown(loss, principal),
        repeated(given, without=(ACCEPTS, ASKED, why)),
        _problem(loss, given),
        why,
        given.get(why, "") if why else "",
    )


def repeated(given: QueryDict, *, without: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The fields of a form, to be sent again with the answer to a question, but not those named in `without`, which the
    question asks for.
    """
    left = (*without, "csrfmiddlewaretoken")
    return tuple((name, value) for name, values in given.lists() if name not in left for value in values)


def _problem(loss: Loss, given: Mapping[str, str]) -> str:
    if ASKED not in given:
        return ""
    typed = given.get(ACCEPTS, "").strip()
    if not typed:
        return "Nothing was typed. Nothing was changed."
    if not _is_answered(given):
        return f"'{typed[:20]}' is not the number of clients that would lose something. Nothing was changed."
    if loss.clients > _number(given, ACCEPTS):
        return (
            f"Meanwhile it is more clients: {loss.clients}, where it was {_number(given, ASKED)}. Nothing was changed."
        )
    return "Say why as well. Nothing was changed."


def _is_answered(given: Mapping[str, str]) -> bool:
    """Whether somebody typed the number of clients that they were asked about, which is never 0."""
    return _number(given, ACCEPTS) == _number(given, ASKED) != 0


def _number(given: Mapping[str, str], field: str) -> int:
    """The number in this field of a form; 0 where there is none."""
    text = given.get(field, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 0
