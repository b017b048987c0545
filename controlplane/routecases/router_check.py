"""Reads files of Envoy's router_check_tool: their tests as route cases, and what of them no case can say. Pure.

A test asks a route configuration; a case asks a listener, or the one that has the port of the authority. What a test
gives the router that no request has (a random value, a runtime, metadata) makes it another question, so that such a
test is no case. What it expects beyond what a case can is left out, and named. Nothing is dropped in silence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.routecases.values import NAME_CHARS
from xdscore.codes import CATALOGUE, shown
from xdscore.findings import Finding
from xdscore.schema.positions import pointer_of

PART_LEFT: Final = CATALOGUE["XDS3094"]
NOT_A_CASE: Final = CATALOGUE["XDS3095"]

_INPUT: Final = frozenset({"authority", "path", "method", "ssl", "additional_request_headers", "additional_headers"})
# What makes no difference where it has this value.
_HARMLESS: Final[Mapping[str, object]] = {"internal": False, "random_value": 0, "runtime": ""}
# Nothing of it takes part in the choice of a route.
_OF_THE_ANSWER: Final = "additional_response_headers"
_EXPECTED: Final = frozenset({"cluster_name", "virtual_host_name", "path_redirect", "code_redirect"})


@dataclass(frozen=True, slots=True)
class CasesInTests:
    """What a file of tests says: `cases`, as the API takes them but not checked yet, each with the pointer of its test;
    and `findings` about what no case can say.
    """

    cases: tuple[tuple[str, dict[str, Any]], ...]
    findings: tuple[Finding, ...]


def listed_tests(tree: object) -> Sequence[object] | None:
    """The tests in a document, which are a list, or are under `tests`; None where it has none."""
    if isinstance(tree, Mapping):
        tree = tree.get("tests")
    return tree if isinstance(tree, list) else None


def cases_in_tests(tests: Sequence[object], *, listener: str, blocking: bool, within: str = "tests") -> CasesInTests:
    """The cases that tests make, and what of the tests no case can say. `listener`: the one that requests come to;
    empty: the one that has their port. `within`: the member of the document that holds the tests; empty: it is a list.
    """
    cases: list[tuple[str, dict[str, Any]]] = []
    findings: list[Finding] = []
    names: dict[str, int] = {}
    for index, test in enumerate(tests):
        pointer = pointer_of((within, index) if within else (index,))
        name, problem = _named(test, index, names)
        case: dict[str, Any] = {}
        left: list[str] = []
        if isinstance(test, Mapping) and not problem:
            case, left, problem = _case(test)
        if problem:
            findings.append(NOT_A_CASE.finding(pointer, test=name, problem=problem))
            continue
        cases.append((pointer, {"name": name, **case, "listener": listener, "blocking": blocking}))
        if left:
            findings.append(PART_LEFT.finding(pointer, test=name, fields=", ".join(left)))
    return CasesInTests(tuple(cases), tuple(findings))


def _named(test: object, index: int, names: dict[str, int]) -> tuple[str, str]:
    """What a test is called, and why it cannot be read; names that are given twice get a number."""
    given = test.get("test_name") if isinstance(test, Mapping) else None
    if not isinstance(given, str) or not given.strip():
        return f"tests/{index}", "it is no object with a 'test_name'"
    name = shown(given.strip(), NAME_CHARS - 10)
    names[name] = names.get(name, 0) + 1
    return (name if names[name] == 1 else f"{name} ({names[name]})"), ""


def _case(test: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], str]:
    """A test as a case, the members that are left out, and why it is none; empty where it is one."""
    given, wanted = test.get("input"), test.get("validate")
    if not isinstance(given, Mapping) or not isinstance(wanted, Mapping):
        return {}, [], "it lacks 'input' or 'validate'"
    strange = sorted(
        f"input.{shown(key)}"
        for key, value in given.items()
        if key not in _INPUT and key != _OF_THE_ANSWER and (key not in _HARMLESS or value != _HARMLESS[key])
    )
    if strange:
        return {}, [], f"a request does not have {', '.join(strange)}"
    headers, problem = _headers(given)
    expect, missing = _expected(wanted)
    left = [f"validate.{shown(key)}" for key in wanted if key not in _EXPECTED]
    left += [f"input.{_OF_THE_ANSWER}"] if given.get(_OF_THE_ANSWER) else []
    left += [f"member '{shown(key)}'" for key in test if key not in ("test_name", "input", "validate")]
    if not problem and not expect:
        problem = missing or f"a case cannot expect {', '.join(left) or 'nothing'}"
    request = {
        "scheme": "https" if given.get("ssl") is True else "http",
        "method": given.get("method", "GET"),
        "authority": given.get("authority", ""),
        "path": given.get("path", ""),
        "headers": headers,
    }
    return {**request, "expect": expect}, left, problem


def _headers(given: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    """The headers that a test adds, by name; values of one name are joined, as they are matched."""
    found: dict[str, str] = {}
    listed = given.get("additional_request_headers", given.get("additional_headers", []))
    if not isinstance(listed, list):
        return {}, "its headers are no list"
    for each in listed:
        pair = _pair(each)
        if pair is None:
            return {}, "one of its headers has no 'key' and 'value'"
        name, value = pair[0].lower(), pair[1]
        if name.startswith(":"):
            return {}, f"it sets '{shown(name)}' as a header"
        found[name] = f"{found[name]},{value}" if name in found else value
    return found, ""


def _pair(header: object) -> tuple[str, str] | None:
    if not isinstance(header, Mapping):
        return None
    inner = header.get("header", header)  # of a HeaderValueOption
    key = inner.get("key", inner.get("field")) if isinstance(inner, Mapping) else None
    value = inner.get("value", "") if isinstance(inner, Mapping) else None
    return (key, value) if isinstance(key, str) and isinstance(value, str) else None


def _expected(wanted: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The end that a test expects; empty, with the reason, where a case cannot expect it."""
    cluster, host = wanted.get("cluster_name"), wanted.get("virtual_host_name")
    location, code = wanted.get("path_redirect"), wanted.get("code_redirect")
    named = {"virtual_host": host} if host else {}
    problem, expect = "", named
    if cluster and (location or code):
        problem, expect = "it expects a cluster and a redirect at once", {}
    elif location or code:
        # The tool asks for the code of a redirect and of a direct response alike.
        answer = "redirect" if location or _is_redirect(code) else "direct"
        expect = {"answer": answer, **named, **dict(_given(location=location, status=code))}
    elif cluster:
        expect = {"answer": "routed", "cluster": cluster, **named}
    elif host == "":
        expect = {"answer": "refused"}
    elif cluster == "" and not named:
        problem = "no cluster may be a redirect, an answer of the proxy or none at all, and it does not say which"
    return expect, problem


def _is_redirect(code: object) -> bool:
    return isinstance(code, int) and 300 <= code < 400


def _given(**members: object) -> Iterator[tuple[str, object]]:
    return ((name, value) for name, value in members.items() if value)
