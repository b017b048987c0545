"""What xdsctl says of a dry run's impact."""

from typing import Any

from xdsctl.commands.manifests import impact_text


def impact(**members: Any) -> dict[str, Any]:
    nothing = {"connected": 0, "receive": 0, "lose": 0, "groups": [], "losing": [], "losing_omitted": 0}
    return nothing | members


def test_impact_text__no_clients__says_so() -> None:
    assert impact_text(impact()) == "No client is connected."


def test_impact_text__nobody_concerned__one_sentence() -> None:
    assert impact_text(impact(connected=1)) == "0 of 1 connected client would be sent something different."


def test_impact_text__groups__how_many_of_each() -> None:
    groups = [{"key": None, "connected": 2, "receive": 1, "lose": 0}, {"key": "core", "connected": 7, "receive": 6}]

    said = impact_text(impact(connected=9, receive=7, lose=5, groups=groups))

    assert said == "7 of 9 connected clients would be sent something different (1 in no group, 6 in core)."
