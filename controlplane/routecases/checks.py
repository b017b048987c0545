"""What must hold of a case before it is kept. Pure: a sentence for each member that cannot be as it is."""

from collections.abc import Mapping
from typing import Final

from controlplane.routecases.values import NAME_CHARS, NOTE_CHARS, Expected, RouteCaseDraft
from xdscore.environment_choice import ClientFacts
from xdscore.routing.values import Answer
from xdscore.routing.well_formed import (
    MAX_HEADERS,
    MAX_ID_CHARS,
    MAX_METHOD_CHARS,
    MAX_VALUE_CHARS,
    authority_problem,
    header_problem,
    method_problem,
    path_problem,
)

MAX_FACT_CHARS: Final = 2_048
"""Of a fact about a client: a SPIFFE ID has no more."""
MAX_METADATA: Final = 16
"""Keys of a client's metadata."""
# The members that speak of an end which not every answer has.
_ONLY_WITH: Final[Mapping[str, tuple[Answer, ...]]] = {
    "cluster": (Answer.ROUTED,),
    "weighted": (Answer.ROUTED,),
    "status": (Answer.DIRECT, Answer.REDIRECT, Answer.REFUSED),
    "location": (Answer.REDIRECT,),
}


def expect_problems(expect: Expected) -> Mapping[str, str]:
    """What is wrong with an expected end, by member; by the empty name what is wrong with it as a whole."""
    if expect == Expected():
        return {"": "This must say what is expected, such as an 'answer'."}
    problems = {
        member: f"Only with the answer {' or '.join(answers)}."
        for member, answers in _ONLY_WITH.items()
        if getattr(expect, member) and expect.answer not in answers
    }
    if expect.cluster and expect.weighted:
        problems["weighted"] = "Give 'cluster' or 'weighted', not both."
    return problems


def case_problems(draft: RouteCaseDraft) -> Mapping[str, str]:
    """What is wrong with a case that somebody typed, by member; those of the expected end stand beside the others."""
    request, expect = draft.request, draft.expect
    problems = dict(expect_problems(expect))
    lines = {
        "name": (draft.name, NAME_CHARS),
        "note": (draft.note, NOTE_CHARS),
        "listener": (draft.listener, MAX_ID_CHARS),
        "url": (f"{request.authority}{request.path}", MAX_VALUE_CHARS),
        "method": (request.method, MAX_METHOD_CHARS),
        "cluster": (expect.cluster, MAX_ID_CHARS),
        "route": (expect.route, MAX_ID_CHARS),
        "virtual_host": (expect.virtual_host, MAX_ID_CHARS),
        "route_name": (expect.route_name, MAX_ID_CHARS),
        "location": (expect.location, MAX_VALUE_CHARS),
    }
    problems |= {member: _line_problem(*line) for member, line in lines.items() if _line_problem(*line)}
    if not draft.name:
        problems["name"] = "A case needs a name: it stands in what is refused."
    if authority_problem(request.authority) or path_problem(request.path):
        problems["url"] = "This must be a URL such as https://shop.example/pay."
    if problem := method_problem(request.method):
        problems["method"] = problem
    if expect.status and not 100 <= expect.status <= 599:
        problems["status"] = "A status is from 100 to 599."
    if problem := _headers_problem(request.headers):
        problems["headers"] = problem
    return problems | (_client_problems(draft.client) if draft.client is not None else {})


def metadata_problem(metadata: Mapping[str, str]) -> str:
    """Why no client of a case has such metadata, as a sentence; empty where one may."""
    return f"This has {len(metadata)} keys; at most {MAX_METADATA} are allowed." if len(metadata) > MAX_METADATA else ""


def _client_problems(client: ClientFacts) -> dict[str, str]:
    facts = {name: str(getattr(client, name)) for name in ("identity", "node_id", "node_cluster")}
    found = {name: _line_problem(text, MAX_FACT_CHARS) for name, text in facts.items()}
    values = (_line_problem(each, MAX_FACT_CHARS) for pair in client.metadata.items() for each in pair)
    found["metadata"] = metadata_problem(client.metadata) or next(filter(None, values), "")
    return {name: said for name, said in found.items() if said}


def _line_problem(text: str, most: int) -> str:
    return "" if len(text) <= most and text.isprintable() else f"This has at most {most:,} characters, on one line."


def _headers_problem(headers: Mapping[str, str]) -> str:
    if len(headers) > MAX_HEADERS:
        return f"A request has at most {MAX_HEADERS} headers here."
    for name, value in headers.items():
        if problem := header_problem(name, value):
            return problem
    return ""
