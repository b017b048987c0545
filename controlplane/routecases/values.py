"""What a route case is: a request, the end that is expected of it, and the end that it has. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from xdscore.codes import shown
from xdscore.environment_choice import ClientFacts
from xdscore.routing.values import Answer, Request, State, Traced

NAME_CHARS: Final = 200
NOTE_CHARS: Final = 1_000
MAX_CASES: Final = 1_000
"""As many are kept of one environment: all may have to be judged under its lock."""
ANSWERS: Final = (Answer.ROUTED, Answer.DIRECT, Answer.REDIRECT, Answer.REFUSED)
"""What may be expected: what is not known is no end."""
# A share is rounded where it is told; what differs by less is the same.
_SAME_PERCENT: Final = 0.1
_BECAUSE_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Share:
    """A cluster that requests go to, and what share of them, in percent."""

    cluster: str
    percent: float


@dataclass(frozen=True, slots=True)
class End:
    """Where a request ends. Names are empty, numbers 0, where the way ended before. `because`: the last choice on the
    way, in a sentence.
    """

    answer: Answer
    listener: str = ""
    route: str = ""
    virtual_host: str = ""
    route_name: str = ""
    shares: tuple[Share, ...] = ()
    status: int = 0
    location: str = ""
    because: str = ""

    def as_json(self) -> dict[str, Any]:
        """The end as a JSON object, as it is stored; what is empty is left out."""
        values = {key: value for key, value in asdict(self).items() if value and key != "shares"}
        shares = [[each.cluster, each.percent] for each in self.shares]
        return {**values, "answer": self.answer.value, **({"shares": shares} if shares else {})}

    @property
    def same(self) -> "End":
        """The part of the end that a case is about: without the sentence, which may be worded otherwise."""
        return replace(self, because="")

    @property
    def said(self) -> str:
        """What becomes of the request, as the end of a sentence that begins with it."""
        match self.answer:
            case Answer.ROUTED:
                return f"goes to {_clusters(self.shares)}{self._by}"
            case Answer.DIRECT:
                return f"is answered {self.status or 'directly'}{self._by}"
            case Answer.REDIRECT:
                return f"is redirected with {self.status} to '{shown(self.location)}'{self._by}"
            case Answer.REFUSED:
                return f"is taken by nothing: {self.because}"
            case _:
                return f"cannot be judged: {self.because}"

    @property
    def _by(self) -> str:
        parts = [f"virtual host '{shown(self.virtual_host)}'"] if self.virtual_host else []
        parts += [f"route '{shown(self.route_name)}'"] if self.route_name else []
        return f" ({', '.join(parts)})" if parts else ""


def end_of(found: Traced) -> End:
    """The end of a request whose way was found."""
    told = [rung for rung in found.rungs if rung.state is not State.OK] or list(found.rungs)
    return End(
        answer=found.answer,
        listener=found.listener,
        route=found.route,
        virtual_host=found.virtual_host,
        route_name=found.route_name,
        shares=tuple(Share(each.cluster, each.percent) for each in sorted(found.shares, key=lambda each: each.cluster)),
        status=found.status,
        location=found.location,
        because=shown(told[-1].text, _BECAUSE_CHARS) if told else "",
    )


def end_from_json(data: Mapping[str, Any]) -> End:
    """The end that is stored in this JSON object; reads what `End.as_json` wrote."""
    values = dict(data)
    shares = tuple(Share(*each) for each in values.pop("shares", ()))
    return End(**{**values, "answer": Answer(values["answer"]), "shares": shares})


@dataclass(frozen=True, slots=True)
class Expected:
    """The end that is expected of a request. What is empty, or 0, may be anything; without an `answer` anything that
    takes the request. `cluster`: the one that all such requests go to; `weighted`: each that some go to, with its share
    in percent, to a tenth.
    """

    answer: Answer | None = None
    cluster: str = ""
    weighted: tuple[Share, ...] = ()
    route: str = ""
    virtual_host: str = ""
    route_name: str = ""
    status: int = 0
    location: str = ""

    def as_json(self) -> dict[str, Any]:
        """The expected end as a JSON object, as the API takes and answers it; what may be anything is left out."""
        values = {key: value for key, value in asdict(self).items() if value and key not in ("answer", "weighted")}
        weighted = [asdict(each) for each in self.weighted]
        answer = {"answer": self.answer.value} if self.answer is not None else {}
        return {**answer, **values, **({"weighted": weighted} if weighted else {})}

    def kept_by(self, end: End) -> bool:
        """Whether a request with this end ends as is expected."""
        if end.answer is Answer.UNKNOWN or (self.answer or end.answer) is not end.answer:
            return False
        if self.answer is None and end.answer is Answer.REFUSED:
            return False
        shares = (Share(self.cluster, 100.0),) if self.cluster else self.weighted
        if shares and not _same_shares(shares, end.shares):
            return False
        pairs = (
            (self.route, end.route),
            (self.virtual_host, end.virtual_host),
            (self.route_name, end.route_name),
            (self.status, end.status),
            (self.location, end.location),
        )
        return all(not wanted or wanted == found for wanted, found in pairs)

    @property
    def said(self) -> str:
        """The expected end in words."""
        shares = (Share(self.cluster, 100.0),) if self.cluster else self.weighted
        answer = self.answer.value if self.answer is not None else "taken"
        parts = [f"{answer} to {_clusters(shares)}" if shares else answer]
        parts += [f"status {self.status}"] if self.status else []
        parts += [f"location '{shown(self.location)}'"] if self.location else []
        named = (("route configuration", self.route), ("virtual host", self.virtual_host), ("route", self.route_name))
        parts += [f"{what} '{shown(name)}'" for what, name in named if name]
        return ", ".join(parts)


def expected_from_json(data: Mapping[str, Any]) -> Expected:
    """The expected end that is stored in this JSON object; reads what `Expected.as_json` wrote."""
    weighted = tuple(Share(each["cluster"], float(each["percent"])) for each in data.get("weighted", ()))
    answer = Answer(data["answer"]) if data.get("answer") else None
    return Expected(**{**data, "answer": answer, "weighted": weighted})


@dataclass(frozen=True, slots=True)
class RouteCaseDraft:
    """A route case as people write it. `listener`: the listener that the request comes to; empty: the one that has its
    port, or is its target. `client`: facts about the client whose rights count; None: whoever it is. `blocking`: a
    change that breaks the case is refused.
    """

    name: str
    request: Request
    expect: Expected
    listener: str = ""
    client: ClientFacts | None = None
    blocking: bool = True
    note: str = ""

    @property
    def request_json(self) -> dict[str, Any]:
        """The request as a JSON object, as it is stored."""
        request = self.request
        return {
            "scheme": request.scheme,
            "method": request.method,
            "authority": request.authority,
            "path": request.path,
            "headers": dict(request.headers),
        }

    @property
    def client_json(self) -> dict[str, Any]:
        """The facts about the client as a JSON object; those that are not known are left out."""
        if self.client is None:
            return {}
        return {key: value for key, value in asdict(self.client).items() if value and key != "kind"}

    def as_json(self) -> dict[str, Any]:
        """The case as a JSON object, as the API takes and answers it."""
        return {
            "name": self.name,
            **self.request_json,
            "listener": self.listener,
            **({"client": client} if (client := self.client_json) else {}),
            "expect": self.expect.as_json(),
            "blocking": self.blocking,
            "note": self.note,
        }

    @property
    def asks(self) -> str:
        """The request in one line, such as `GET https://shop.example/pay`."""
        request = self.request
        return f"{request.method} {request.scheme}://{request.authority}{request.path}"


def draft_from_json(data: Mapping[str, Any]) -> RouteCaseDraft:
    """The case that is written in this JSON object, which was checked; reads what `RouteCaseDraft.as_json` wrote."""
    request = {key: data[key] for key in ("scheme", "method", "authority", "path", "headers")}
    client = data.get("client") or {}
    return RouteCaseDraft(
        name=data["name"],
        request=Request(**request),
        expect=expected_from_json(data["expect"]),
        listener=data["listener"],
        client=ClientFacts(**client) if client else None,
        blocking=data["blocking"],
        note=data["note"],
    )


@dataclass(frozen=True, slots=True)
class RouteCaseState:
    """A route case that is kept, and how it stands by what is written now.

    `revision`: counts its writes, from 1. `author`: who wrote it last; `created_by`: who first.
    `end`: the end that its request has; `holds`: whether that is as expected.
    `since`: the public id of the change by which it came to hold, or to fail; empty: since the case was written.
    """

    id: int
    draft: RouteCaseDraft
    revision: int
    created_by: str
    created_at: datetime
    author: str
    updated_at: datetime
    end: End
    holds: bool
    since: str = ""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """What judging a case found. `id`: its row; None for one that is not kept."""

    id: int | None
    draft: RouteCaseDraft
    end: End
    uses: frozenset[str] = field(default=frozenset())

    @property
    def holds(self) -> bool:
        """Whether the request ends as is expected."""
        return self.draft.expect.kept_by(self.end)


def _clusters(shares: tuple[Share, ...]) -> str:
    if len(shares) == 1 and shares[0].percent == 100:
        return f"cluster '{shown(shares[0].cluster)}'"
    parts = [f"'{shown(each.cluster)}' ({each.percent:g} %)" for each in shares]
    return f"clusters {', '.join(parts)}"


def _same_shares(wanted: tuple[Share, ...], found: tuple[Share, ...]) -> bool:
    shares = {each.cluster: each.percent for each in found}
    return shares.keys() == {each.cluster for each in wanted} and all(
        abs(shares[each.cluster] - each.percent) <= _SAME_PERCENT for each in wanted
    )
