"""Where a request goes: asked by a form, a link or a pasted line of an access log, answered first, then choice by
choice.

The form is sent by POST, so that headers, which may hold secrets, come into no address; links leave those out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.http import urlencode
from django.utils.text import capfirst

from controlplane.accounts.principal import Role
from controlplane.catalog.selectors import resource_names
from controlplane.clients.foreign_text import escape
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.request_form import (
    MAX_HEADER_CHARS,
    Repeated,
    Typed,
    asked_of,
    repeated,
    typed_of,
    typed_of_line,
)
from controlplane.console.resources import resource_url
from controlplane.explain.requests import request_explained
from xdscore.resource_types import LISTENER
from xdscore.routing.access_log import MAX_TEXT_CHARS, LogLine, UnreadableLine, line_of
from xdscore.routing.logged import MEANINGS, Agreement, compared
from xdscore.routing.saying import headline, sentence, stations
from xdscore.routing.values import Answer, Rung, State, Traced
from xdscore.routing.values import Place as Spot
from xdscore.routing.well_formed import MAX_ID_CHARS, MAX_METHOD_CHARS, MAX_VALUE_CHARS, SCHEMES

_MAX_LISTENERS: Final = 100  # that are suggested
_MAX_LOST: Final = 50  # of one choice; the API has more
_MAX_ENDPOINTS: Final = 50
_MAX_HEADLINE: Final = 200
_MAX_LEFT_OUT: Final = 2_000
_LIMITS: Final = {
    "line": MAX_TEXT_CHARS,
    "headers": MAX_HEADER_CHARS,
    "id": MAX_ID_CHARS,
    "value": MAX_VALUE_CHARS,
    "method": MAX_METHOD_CHARS,
}
_LOOKS: Final = {State.OK: "pass", State.FAIL: "fail", State.UNKNOWN: "unknown", None: "unreached"}
_VERDICTS: Final = {
    Answer.ROUTED: "yes",
    Answer.REDIRECT: "yes",
    Answer.DIRECT: "yes",
    Answer.REFUSED: "no",
    Answer.UNKNOWN: "unknown",
}
_AGREEMENTS: Final = {Agreement.SAME: "log_same", Agreement.DIFFERS: "log_differs", Agreement.OPEN: "log_open"}
_TITLES: Final = {
    "view": "By whose view",
    "request": "The request, as it is read",
    "filters": "Filters before the route",
    "action": "What is answered",
}
_LABELS: Final = {
    "authority": "Host",
    "path": "Path",
    "scheme": "Scheme",
    "method": "Method",
    "headers": "Headers",
    "listener": "Listener",
    "client": "Client",
    "at": "Epoch",
}


@dataclass(frozen=True, slots=True)
class LostLine:
    """A candidate that was not chosen, why, and the page of its manifest at what decided. `line`: of that; 0 where it
    is not known.
    """

    name: str
    said: str
    url: str
    line: int


@dataclass(frozen=True, slots=True)
class RungLine:
    """A choice on the way, as the page shows it. `look`: the key in `states.LOOKS` of its badge. `place`: the resource
    that decided and the pointer in it; `url`: its page there. `lost`: the first that lost; `more`: how many others did.
    """

    number: int
    title: str
    look: str
    text: str
    place: str
    url: str
    lost: tuple[LostLine, ...]
    more: int


@dataclass(frozen=True, slots=True)
class StationLine:
    """A station of the way, as it is drawn. `rung`: the number of the choice; 0 where there was none."""

    title: str
    name: str
    look: str
    rung: int


@dataclass(frozen=True, slots=True)
class Pasted:
    """What was pasted as a line of a log, and the line in it; None, and why, where there is none."""

    text: str = ""
    line: LogLine | None = None
    problem: str = ""

    def about(self, typed: Typed) -> "Pasted":
        """What was pasted, if the form still has the request of the line; else an empty one, for another is asked
        about.
        """
        if self.line is None:
            return Pasted()
        logged = self.line.request
        same = (logged.method, logged.authority, logged.path) == (typed.method, typed.authority, typed.path)
        return self if same else Pasted()


class RequestPage(Page):
    """The page that says where a request goes, and why."""

    template = "requests/page.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The form; with the answer, where the address asks."""
        typed = typed_of(request.GET)
        if not typed.asks:
            return self._shown(environment_key, typed, Pasted())
        without = request.GET.get("without", "")[:_MAX_LEFT_OUT].split()
        return self._answered(environment_key, typed, Pasted(), {"without": without})

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The answer to the form, or to a pasted line of a log."""
        typed, pasted = typed_of(request.POST), _pasted(request.POST.get("line", ""))
        if "paste" not in request.POST:
            return self._answered(environment_key, typed, pasted.about(typed))
        if pasted.line is None:
            return self._shown(environment_key, typed, pasted, error=InputInvalid(pasted.problem))
        return self._answered(environment_key, typed_of_line(pasted.line, typed), pasted)

    def _answered(
        self, environment_key: str, typed: Typed, pasted: Pasted, more: Mapping[str, object] = MappingProxyType({})
    ) -> HttpResponse:
        asked, wrong = asked_of(typed)
        if asked is None:
            said = " ".join(f"{_LABELS[name]}: {text}" for name, text in wrong.items())
            return self._shown(environment_key, typed, pasted, {"wrong": wrong}, error=InputInvalid(said))
        try:
            found = request_explained(
                environment_key=environment_key,
                request=asked.request,
                listener=asked.listener,
                client=asked.client,
                at=asked.at,
            )
        except ControlPlaneError as error:
            return self._shown(environment_key, typed, pasted, error=error)
        logged = _logged(pasted.line, found) if pasted.line is not None else {}
        answer = {**_answer(environment_key, found), **logged, **more}
        return self._shown(environment_key, typed, pasted, answer, repeated=repeated(environment_key, asked))

    def _shown(
        self,
        environment_key: str,
        typed: Typed,
        pasted: Pasted,
        more: Mapping[str, object] = MappingProxyType({}),
        *,
        error: ControlPlaneError | None = None,
        repeated: Repeated | None = None,
    ) -> HttpResponse:
        context = {
            "typed": typed,
            "line": pasted.text,
            "log": pasted.line,
            "schemes": SCHEMES,
            "listeners": resource_names(environment_key=environment_key, kind=LISTENER, limit=_MAX_LISTENERS),
            "limits": _LIMITS,
            "error": error,
            "repeated": repeated,
            **more,
        }
        shown = self.page(context, status=error.status if error is not None else 200)
        if repeated is None or repeated.left_out:
            # It may hold a secret that was typed, which no browser keeps.
            shown.headers["Cache-Control"] = "no-store"
        return shown


def _pasted(text: str) -> Pasted:
    try:
        return Pasted(text, line_of(text))
    except UnreadableLine as error:
        return Pasted(text, None, str(error))


def _answer(environment_key: str, found: Traced) -> dict[str, object]:
    rungs = [_rung(environment_key, number, each) for number, each in enumerate(found.rungs, 1)]
    endpoints, arrives = found.endpoints[:_MAX_ENDPOINTS], found.answer is Answer.ROUTED
    return {
        "found": found,
        "verdict": _VERDICTS[found.answer],
        "headline": escape(headline(found), keep="")[:_MAX_HEADLINE],
        "sentence": sentence(found),
        # Where the way ends or, where it does not, the route that was chosen.
        "decided": next((each for each in rungs if each.title == "Route" and arrives), rungs[-1]),
        "filters": next((each.text for each in found.rungs if each.title == "filters"), ""),
        "way": [
            StationLine(each.title, each.name, _LOOKS[each.state], 0 if each.rung is None else each.rung + 1)
            for each in stations(found)
        ],
        "rungs": rungs,
        "endpoints": endpoints,
        "more_endpoints": len(found.endpoints) - len(endpoints),
    }


def _rung(environment_key: str, number: int, rung: Rung) -> RungLine:
    called = "route " if rung.title == "route" else ""  # which have no names, only numbers
    lost = tuple(
        LostLine(f"{called}{each.name}", each.said, _manifest_url(environment_key, each.place), each.line)
        for each in rung.lost[:_MAX_LOST]
    )
    # Of a resource that is not there, no field decided, and it has no page.
    there = rung.place if rung.place is not None and (rung.place.path or rung.state is State.OK) else None
    return RungLine(
        number,
        _TITLES.get(rung.title, capfirst(rung.title)),
        _LOOKS[rung.state],
        rung.text,
        _place_said(there, rung.line),
        _manifest_url(environment_key, there) if there is not None else "",
        lost,
        len(rung.lost) - len(lost) + rung.more,
    )


def _place_said(place: Spot | None, line: int) -> str:
    """A place in words; `line`: of the manifest, 0 where that is not known."""
    return f"{place}, line {line}" if line else str(place or "")


def _manifest_url(environment_key: str, place: Spot) -> str:
    """The page of a resource, at the line of its manifest where a value stands."""
    url = resource_url(environment_key, *place.key)
    return f"{url}&{urlencode({'at': place.pointer})}#at" if place.path else url


def _logged(log: LogLine, found: Traced) -> Mapping[str, object]:
    beside = [(_AGREEMENTS[each.agreement], each.said) for each in compared(log, found)]
    flags = [(flag, MEANINGS.get(flag, "not known here")) for flag in log.flags]
    told = " ".join(said for _, said in beside)
    return {"compared": beside, "flags": [(flag, meaning) for flag, meaning in flags if meaning not in told]}


urlpatterns = [
    path("e/<str:environment_key>/request", RequestPage.as_view(), name="request"),
]
PLACES = (Place(Section.NOW, 55, "Requests", "arrow-right", "request"),)
