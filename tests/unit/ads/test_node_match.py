"""Node matchers of CSDS: what they match, and that whatever cannot be matched is refused by name (protocol.md K2)."""

from typing import Any

import pytest
from envoy.service.status.v3 import csds_pb2
from google.protobuf import json_format

from adsserver.ports import FleetClient
from adsserver.wire.node_match import MatcherError, compile_matchers

CLIENT = FleetClient("c1", "prod", "spiffe://corp/Web", "web-1.eu", "fleet", "envoy", "1.40.0")


def matched(*matchers: Any, client: FleetClient = CLIENT) -> bool:
    request = json_format.ParseDict({"node_matchers": matchers}, csds_pb2.ClientStatusRequest())
    return compile_matchers(request.node_matchers, max_regex_chars=20)(client)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"exact": "web-1.eu"}, True),
        ({"exact": "web-1"}, False),
        ({"exact": ""}, False),
        ({"prefix": "web-"}, True),
        ({"prefix": "eb"}, False),
        ({"suffix": ".eu"}, True),
        ({"suffix": "web"}, False),
        ({"contains": "-1."}, True),
        ({"contains": "WEB"}, False),
        ({"contains": "WEB", "ignore_case": True}, True),
        ({"exact": "WEB-1.EU", "ignore_case": True}, True),
        ({"safe_regex": {"regex": r"web-\d\..*"}}, True),
        ({"safe_regex": {"regex": r"web-\d"}}, False),
    ],
)
def test_node_id__each_pattern__matches_as_in_envoy(text: dict[str, object], expected: bool) -> None:
    assert matched({"node_id": text}) is expected


def test_matchers__none__match_everybody() -> None:
    assert matched()
    assert matched({})


def test_matchers__several__are_or_ed_and_fields_and_ed() -> None:
    good, bad = {"exact": "web-1.eu"}, {"exact": "other"}
    fact = {"path": [{"key": "parley"}, {"key": "identity"}], "value": {"string_match": {"suffix": "/Web"}}}

    assert matched({"node_id": bad}, {"node_id": good})
    assert matched({"node_id": good, "node_metadatas": [fact]})
    assert not matched({"node_id": bad, "node_metadatas": [fact]})


@pytest.mark.parametrize(
    ("matcher", "text"),
    [
        ({"node_id": {"prefix": ""}}, "node_matchers[0].node_id.prefix: it must not be empty."),
        ({"node_id": {}}, "node_matchers[0].node_id: a match pattern is missing; use exact"),
        ({"node_id": {"exact": "x" * 1025}}, "it has 1025 characters; at most 1024 are allowed."),
        ({"node_id": {"safe_regex": {"regex": "x" * 21}}}, "regex: it has 21 characters; at most 20 are allowed."),
        ({"node_id": {"safe_regex": {"regex": "("}}}, "safe_regex.regex: RE2 cannot compile it: missing"),
        ({"node_id": {"safe_regex": {"regex": ""}}}, "safe_regex.regex: it must not be empty."),
        (
            {"node_metadatas": [{"path": [{"key": "team"}], "value": {"string_match": {"exact": "x"}}}]},
            "only these paths can be matched: parley.environment, parley.identity, parley.client.",
        ),
        (
            {"node_metadatas": [{"path": [{"key": "parley"}, {"key": "client"}], "value": {"present_match": True}}]},
            "value: only string_match can be matched",
        ),
        ({"node_metadatas": [{}] * 33}, "node_metadatas: at most 32 are allowed."),
    ],
)
def test_matchers__what_cannot_be_matched__is_refused_by_its_field(matcher: dict[str, object], text: str) -> None:
    with pytest.raises(MatcherError) as caught:
        matched(matcher)

    assert text in str(caught.value)


def test_matchers__too_many__are_refused() -> None:
    with pytest.raises(MatcherError, match="33 matchers; at most 32"):
        matched(*[{"node_id": {"exact": "x"}}] * 33)


def test_regex__made_to_be_slow__takes_no_time_and_cannot_fill_memory() -> None:
    slow = FleetClient("c", "prod", "", "a" * 1000 + "!", "", "", "")

    assert not matched({"node_id": {"safe_regex": {"regex": "(a+)+$"}}}, client=slow)
    with pytest.raises(MatcherError, match="RE2 cannot compile it"):
        matched({"node_id": {"safe_regex": {"regex": "((a{999}){999}){99}"}}})
