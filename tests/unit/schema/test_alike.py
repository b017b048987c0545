"""Messages with one key differ in nothing but plain texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.schema.alike import alike
from xdscore.schema.types_registry import new_message
from xdscore.schema.walk import AnyMessage

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["a" * 100, "b" * 101, '"', "\\", '\\"'])
PACKED = "type.googleapis.com/envoy.config.route.v3.RedirectAction"


def route(prefix: str, **headers: str) -> AnyMessage:
    made: AnyMessage = new_message("envoy.config.route.v3.Route")
    made.match.prefix = prefix
    for name, value in headers.items():
        made.match.headers.add(name=name).string_match.exact = value
    return made


def packed(**fields: str) -> AnyMessage:
    """A route with an Any all of whose bytes are printable."""
    inner: AnyMessage = new_message("envoy.config.route.v3.RedirectAction")
    for name, text in fields.items():
        setattr(inner, name, text)
    made = route("/")
    made.typed_per_filter_config["f"].Pack(inner)
    return made


def test_alike__plain_texts_alone_differ__have_one_key() -> None:
    assert len(set(alike([route("/a", x="1"), route("/b", y="2"), route("/" + "c" * 99, z="\u007e")]))) == 1
    assert alike([]) == []


@pytest.mark.parametrize(
    "other",
    [
        route("/a b"),
        route(""),
        route("/" + "c" * 100),
        route("/\\"),
        route('/"'),
        route("/\n"),
        route("/é"),
        route("/a", x="1"),
        packed(prefix_rewrite="a" * 40),
    ],
    ids=str,
)
def test_alike__anything_else_differs__have_others(other: AnyMessage) -> None:
    keys = alike([route("/a"), other, route("/b")])

    assert (keys[0], keys[0] == keys[1]) == (keys[2], False)


def test_alike__contents_of_any_without_anything_odd__are_told_apart_by_their_fields() -> None:
    one, two = packed(prefix_rewrite="a" * 40), packed(prefix_rewrite="a" * 40, scheme_redirect="b" * 40)
    assert one.typed_per_filter_config["f"].value.decode().isprintable()
    assert two.typed_per_filter_config["f"].type_url == PACKED

    assert len(set(alike([one, two, route("/a")]))) == 3


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_alike__any_texts__the_key_of_each_is_its_own_and_says_each_that_is_not_plain(
    texts: list[tuple[str, str]],
) -> None:
    messages = [route(one, x=two) for one, two in texts]

    keys = alike(messages)

    assert keys == [alike([each])[0] for each in messages]
    plain = [tuple(_plain(text) or text for text in pair) for pair in texts]
    assert len(set(keys)) == len(set(plain))


def _plain(text: str) -> str:
    is_plain = 0 < len(text) <= 100 and all("!" <= each <= "~" and each not in '"\\' for each in text)
    return "plain text" if is_plain else ""
