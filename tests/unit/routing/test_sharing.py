"""What of a request stands in links and commands: nothing that looks like a secret, and the rest as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.routing.sharing import shareable
from xdscore.routing.values import Request


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "x-api-key", "X-Amz-Security-Token"),
        *("x-auth-request-email", "x-csrf-token", "x-session", "jwt-payload", "x-forwarded-client-cert"),
    ],
)
def test_header__whose_name_tells_a_secret__is_left_out_and_named(name: str) -> None:
    shared, left_out = shareable(Request("shop.example", headers={name: "short", "x-canary": "1"}))

    assert shared.headers == {"x-canary": "1"}
    assert left_out == (name,)


@pytest.mark.parametrize(
    "value", ["ghp_abcdefghij0123456789", "eyJhbGciOiJIUzI1NiJ9.e30.x1", "Bearer 0123456789abcdef01234567"]
)
def test_header__whose_value_looks_like_a_secret__is_left_out(value: str) -> None:
    shared, left_out = shareable(Request("shop.example", headers={"x-who": value}))

    assert (shared.headers, left_out) == ({}, ("x-who",))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user-agent", "Mozilla/5.0 (X11) HeadlessChrome/129.0.6668.100 Safari/537.36"),
        ("content-type", "application/vnd.example.pay.v12+json"),
        ("x-canary", "1"),
        ("x-tenant", "a-tenant-with-a-long-name"),
    ],
)
def test_header__that_is_no_secret__stays(name: str, value: str) -> None:
    request = Request("shop.example", "/pay?n=1&n=2", headers={name: value})

    assert shareable(request) == (request, ())


@pytest.mark.parametrize(
    ("path", "kept", "left_out"),
    [
        ("/cb?access_token=x", "/cb", ("?access_token",)),
        ("/cb?a=1&code=abc&b", "/cb?a=1&b", ("?code",)),
        ("/cb?a=abcdefghijabcdefghij1", "/cb", ("?a",)),
        ("/cb?&&", "/cb?&&", ()),
        ("/cb?", "/cb?", ()),
        ("/cb;token=1", "/cb;token=1", ()),
    ],
)
def test_query__with_a_secret__loses_that_parameter(path: str, kept: str, left_out: tuple[str, ...]) -> None:
    shared, named = shareable(Request("shop.example", path))

    assert (shared.path, named) == (kept, left_out)


@given(st.text(), st.dictionaries(st.text(max_size=10), st.text(max_size=30), max_size=3))
def test_request__any__what_was_shared_is_shared_again_as_it_is(query: str, headers: dict[str, str]) -> None:
    shared, _ = shareable(Request("shop.example", f"/?{query}", headers=headers))

    assert shareable(shared) == (shared, ())
