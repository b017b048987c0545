"""What an identity provider says of a person: groups, roles and names, out of whatever stands in a claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.common.roles import Role
from controlplane.config.oidc import GroupRole
from controlplane.oidc.claims import MAX_GROUPS, Disbelieved, groups_of, roles_of, subject_of, user_name

ADMIN = GroupRole("platform", Role.ADMIN, "")
EDITOR = GroupRole("shop", Role.EDITOR, "prod")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("claims", "groups"),
    [
        ({}, None),
        ({"groups": []}, set()),
        ({"groups": None}, set()),
        ({"groups": ["a", "b", "a"]}, {"a", "b"}),
        ({"groups": "a"}, {"a"}),
        ({"groups": {"a": 1}}, set()),
        ({"groups": ["a", 7, None, ["b"], ""]}, {"a"}),
        ({"groups": ["x" * 256, "a"]}, {"a"}),
        (
            {"groups": [f"g{number}" for number in range(MAX_GROUPS + 5)]},
            {f"g{number}" for number in range(MAX_GROUPS)},
        ),
    ],
)
def test_groups__of_claims__are_texts_and_no_more_than_may_be(
    claims: dict[str, object], groups: set[str] | None
) -> None:
    assert groups_of(claims, "groups") == groups


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        ([], set()),
        (["platform"], {ADMIN}),
        (["shop", "platform", "else"], {ADMIN, EDITOR}),
        (["Platform", " platform", "platform/", "plat*"], set()),
    ],
)
def test_roles__of_groups__are_compared_letter_by_letter(groups: list[str], roles: set[GroupRole]) -> None:
    assert roles_of(groups, (ADMIN, EDITOR)) == roles


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "ana"}, "ana"),
        ({"preferred_username": "ana@example.org"}, "ana@example.org"),
        ({"preferred_username": "J\u00fcrgen M\u00fcller"}, "Jurgen-Muller"),
        ({"preferred_username": "\u0430\u0434\u043c\u0438\u043d", "email": "b@example.org"}, "b@example.org"),
        ({"preferred_username": "<b>x</b>"}, "b-x-b"),
        ({"preferred_username": 7}, "the-subject"),
        ({"preferred_username": "x" * 500}, "x" * 130),
        ({}, "the-subject"),
    ],
)
def test_user_name__is_plain_and_fits(claims: dict[str, object], name: str) -> None:
    assert user_name(claims, "the-subject") == name


def test_user_name__nothing_that_can_be_one__is_still_a_name() -> None:
    assert user_name({}, "\u4eba") == "somebody"


@pytest.mark.parametrize("subject", [None, "", 7, ["s"], "x" * 256, "a\0b"])
def test_subject__that_is_none__is_refused(subject: object) -> None:
    with pytest.raises(Disbelieved):
        subject_of({"sub": subject})


@given(st.dictionaries(st.sampled_from(["groups", "sub", "preferred_username", "email"]), ANYTHING))
def test_claims__whatever_they_hold__never_break_what_reads_them(claims: dict[str, object]) -> None:
    groups = groups_of(claims, "groups")
    name = user_name(claims, "s")

    assert groups is None or all(0 < len(each) <= 255 for each in groups)
    assert name.isascii()
    assert 0 < len(name) <= 130
