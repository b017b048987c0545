"""Differences of manifests: complete, minimal, and readable."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from xdscore.schema import Tree
from xdscore.schema.differences import FieldDifference, field_differences, unified_text

trees = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(("", "a", "b")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", "b", "name")), inner, max_size=3),
    max_leaves=12,
)


def test_differences__nested_value__is_named_by_its_pointer() -> None:
    before: Tree = {"name": "pay", "a/b": {"weights": [1, 2]}}
    after: Tree = {"name": "pay", "a/b": {"weights": [1, 3, 4]}}

    assert field_differences(before, after) == (
        FieldDifference("/a~1b/weights/1", 2, 3),
        FieldDifference("/a~1b/weights/2", None, 4),
    )


def test_differences__member_added_or_removed__is_one_difference() -> None:
    assert field_differences({"a": {"x": 1, "y": 2}}, {"b": 1}) == (
        FieldDifference("/a", {"x": 1, "y": 2}, None),
        FieldDifference("/b", None, 1),
    )


def test_differences__named_item_put_in_front__leaves_the_others_alone() -> None:
    cors: Tree = {"name": "cors"}
    router: Tree = {"name": "router", "x": 1}

    assert field_differences([router], [cors, router]) == (FieldDifference("/0", None, cors),)
    assert field_differences([cors, router], [router, cors]) == (
        FieldDifference("", ["cors", "router"], ["router", "cors"]),
    )


def test_differences__true_and_one__differ() -> None:
    assert field_differences({"a": 1}, {"a": True}) == (FieldDifference("/a", 1, True),)


@given(before=trees, after=trees)
def test_differences__of_any_trees__are_none_exactly_when_equal(before: Any, after: Any) -> None:
    def plain(tree: Any) -> Any:
        # A member that is null and one that is absent say the same in protobuf's JSON.
        if isinstance(tree, dict):
            return {key: plain(value) for key, value in tree.items() if value is not None}
        return [plain(item) for item in tree] if isinstance(tree, list) else (type(tree), tree)

    differ = bool(field_differences(plain_json(before), plain_json(after)))

    assert differ == (plain(plain_json(before)) != plain(plain_json(after)))


def plain_json(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: plain_json(value) for key, value in tree.items() if value is not None}
    return [plain_json(item) for item in tree if item is not None] if isinstance(tree, list) else tree


def test_text__changed_created_deleted__reads_like_a_patch() -> None:
    pay: Tree = {"name": "pay", "connect_timeout": "1s"}
    slower: Tree = {"name": "pay", "connect_timeout": "2s"}

    assert unified_text("cluster/pay", pay, slower).splitlines() == [
        "--- a/cluster/pay",
        "+++ b/cluster/pay",
        "@@ -1,2 +1,2 @@",
        " name: pay",
        "-connect_timeout: 1s",
        "+connect_timeout: 2s",
    ]
    assert unified_text("cluster/pay", None, pay).startswith("--- /dev/null\n+++ b/cluster/pay\n")
    assert unified_text("cluster/pay", pay, None).startswith("--- a/cluster/pay\n+++ /dev/null\n")
    assert unified_text("cluster/pay", pay, pay) == ""
