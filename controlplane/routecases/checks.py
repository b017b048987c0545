"""What must hold of a case before it is kept. Pure: a sentence for each member that cannot be as it is."""

import re
from collections.abc import Mapping
from typing import Final

from controlplane.routecases.values import NAME_CHARS, NOTE_CHARS, Expected, RouteCaseDraft
from xdscore.routing.values import Answer

MAX_HEADERS: Final = 100
MAX_CHARS: Final = 1_024
# Proxies take 60 KiB of headers by default; a path is one of them.
MAX_VALUE_CHARS: Final = 8_192
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}", re.ASCII)  # RFC 9110 section 5.6.2
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
        "listener": (draft.listener, MAX_CHARS),
        "url": (f"{request.authority}{request.path}", MAX_VALUE_CHARS),
        "cluster": (expect.cluster, MAX_CHARS),
        "virtual_host": (expect.virtual_host, MAX_CHARS),
        "route_name": (expect.route_name, MAX_CHARS),
        "location": (expect.location, MAX_VALUE_CHARS),
    }
    for member, (text, most) in lines.items():
        if len(text) > most or not text.isprintable():
            problems[member] = f"This has at most {most:,} characters, on one line."
    if not draft.name:
        problems["name"] = "A case needs a name: it stands in what is refused."
    if not request.authority or any(each in request.authority for each in "/?#@ ") or not request.path.startswith("/"):
        problems["url"] = "This must be a URL such as https://shop.example/pay."
    if not _TOKEN.fullmatch(request.method):
        problems["method"] = "This must be a method such as GET."
    if expect.status and not 100 <= expect.status <= 599:
        problems["status"] = "A status is from 100 to 599."
    if problem := _headers_problem(request.headers):
        problems["headers"] = problem
    return problems


def _headers_problem(headers: Mapping[str, str]) -> str:
    if len(headers) > MAX_HEADERS:
        return f"A request has at most {MAX_HEADERS} headers here."
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            return "A header is written as 'name: value', with letters, digits and hyphens in its name."
        if len(value) > MAX_VALUE_CHARS or not value.isprintable():
            return f"A header's value has at most {MAX_VALUE_CHARS:,} characters, on one line."
    return ""
