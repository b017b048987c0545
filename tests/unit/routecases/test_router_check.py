"""Files of Envoy's router_check_tool: what becomes a case, and what is named because no case can say it."""

from typing import Any

import pytest

from controlplane.routecases.router_check import cases_in_tests, listed_tests

INPUT = {"authority": "shop.example", "path": "/pay", "method": "GET"}


def _tested(validate: object, **given: object) -> dict[str, Any]:
    return {"test_name": "pays", "input": {**INPUT, **given}, "validate": validate}


def only(test: object) -> tuple[dict[str, Any] | None, list[tuple[str, str, str]]]:
    """The case of a test, None where it is none; and its findings."""
    found = cases_in_tests([test], listener="edge", blocking=True)
    cases = [case for _, case in found.cases]
    return cases[0] if cases else None, [(each.code, each.pointer, each.detail) for each in found.findings]


@pytest.mark.parametrize(
    ("validate", "expect"),
    [
        (
            {"cluster_name": "pay", "virtual_host_name": "shop"},
            {"answer": "routed", "cluster": "pay", "virtual_host": "shop"},
        ),
        (
            {"path_redirect": "https://x/y", "code_redirect": 301},
            {"answer": "redirect", "location": "https://x/y", "status": 301},
        ),
        ({"cluster_name": "", "path_redirect": "https://x/y"}, {"answer": "redirect", "location": "https://x/y"}),
        ({"code_redirect": 308}, {"answer": "redirect", "status": 308}),
        ({"code_redirect": 403}, {"answer": "direct", "status": 403}),
        ({"cluster_name": "", "virtual_host_name": ""}, {"answer": "refused"}),
        ({"virtual_host_name": "shop"}, {"virtual_host": "shop"}),
    ],
)
def test_test__whose_end_a_case_can_expect__is_a_case(validate: object, expect: object) -> None:
    case, findings = only(_tested(validate))

    assert findings == []
    assert case is not None
    assert case["expect"] == expect


def test_test__with_headers_over_tls__asks_for_the_same_request() -> None:
    more = {
        "ssl": True,
        "internal": False,
        "random_value": 0,
        "additional_request_headers": [
            {"key": "X-User", "value": "1"},
            {"key": "x-user", "value": "2"},
            {"header": {"key": "x-b", "value": "3"}},
        ],
    }

    case, findings = only(_tested({"cluster_name": "pay"}, **more))

    assert findings == []
    assert case == {
        "name": "pays",
        "scheme": "https",
        "method": "GET",
        "authority": "shop.example",
        "path": "/pay",
        "headers": {"x-user": "1,2", "x-b": "3"},
        "listener": "edge",
        "blocking": True,
        "expect": {"answer": "routed", "cluster": "pay"},
    }


def test_test__that_expects_more_than_a_case_can__is_kept_without_it_and_says_so() -> None:
    case, findings = only(
        _tested(
            {"cluster_name": "pay", "path_rewrite": "/p", "virtual_cluster_name": "v"}, additional_response_headers=[1]
        )
    )

    assert case is not None
    assert findings == [
        (
            "XDS3094",
            "/tests/0",
            (
                "Test 'pays' is kept without validate.path_rewrite, validate.virtual_cluster_name, "
                "input.additional_response_headers."
            ),
        )
    ]


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        (_tested({"cluster_name": "pay"}, random_value=7), "a request does not have input.random_value"),
        (_tested({"cluster_name": "pay"}, runtime="x.y"), "a request does not have input.runtime"),
        (_tested({"cluster_name": "pay"}, internal=True), "a request does not have input.internal"),
        (_tested({"cluster_name": "pay"}, dynamic_metadata=[]), "a request does not have input.dynamic_metadata"),
        (_tested({"path_rewrite": "/p"}), "a case cannot expect validate.path_rewrite"),
        (_tested({}), "a case cannot expect nothing"),
        (_tested({"cluster_name": ""}), "no cluster may be a redirect, an answer of the proxy or none at all"),
        (_tested({"cluster_name": "a", "path_redirect": "/b"}), "it expects a cluster and a redirect at once"),
        (
            _tested({"cluster_name": "a"}, additional_request_headers=[{"key": ":path", "value": "/"}]),
            "it sets ':path'",
        ),
        (_tested({"cluster_name": "a"}, additional_request_headers=[7]), "one of its headers has no 'key' and 'value'"),
        (_tested({"cluster_name": "a"}, additional_request_headers={}), "its headers are no list"),
        ({"test_name": "x", "input": 7}, "it lacks 'input' or 'validate'"),
        ({"input": INPUT}, "it is no object with a 'test_name'"),
        ("x", "it is no object with a 'test_name'"),
    ],
)
def test_test__that_no_case_can_be__is_named_with_the_reason(test: object, problem: str) -> None:
    case, [(code, pointer, detail)] = only(test)

    assert (case, code, pointer) == (None, "XDS3095", "/tests/0")
    assert problem in detail


def test_tests__of_one_name__are_numbered() -> None:
    found = cases_in_tests(
        [_tested({"cluster_name": "a"}), _tested({"cluster_name": "b"})], listener="", blocking=False
    )

    assert [case["name"] for _, case in found.cases] == ["pays", "pays (2)"]


@pytest.mark.parametrize(("tree", "tests"), [([1], [1]), ({"tests": [1]}, [1]), ({}, None), (7, None)])
def test_document__as_list_or_under_tests__is_read(tree: object, tests: object) -> None:
    assert listed_tests(tree) == tests
