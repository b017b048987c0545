"""What xdsctl says of what no Envoy has read."""

from typing import Any

from xdsctl.unjudged import unjudged, unjudged_lines

OFF = "deep validation is off in 'shop'"


def answer(count: int, **more: str) -> dict[str, Any]:
    named = [{"type": "cluster", "name": f"c{number}"} for number in range(min(count, 100))]
    return {"not_judged": [{"by": "envoy", "why": OFF, "count": count, "resources": named, **more}]}


def test_unjudged__server_of_the_version_before__nothing_is_said() -> None:
    assert unjudged({}) == unjudged_lines({}) == ()


def test_unjudged__one__named_with_reason_and_hint() -> None:
    assert unjudged(answer(1, hint="Ask an administrator.")) == (f"whether an Envoy takes cluster/c0 ({OFF})",)
    assert unjudged_lines(answer(1, hint="Ask an administrator.")) == (
        f"Not judged: whether an Envoy takes cluster/c0 ({OFF}). Ask an administrator.",
    )


def test_unjudged__many_and_no_hint__the_first_are_named_and_the_rest_counted() -> None:
    first = "cluster/c0, cluster/c1, cluster/c2, cluster/c3, cluster/c4"

    assert unjudged_lines(answer(130)) == (f"Not judged: whether an Envoy takes {first} and 125 more ({OFF}).",)
