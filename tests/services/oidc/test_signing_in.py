"""Signing in by an identity provider: who gets in, as whom, with which rights; and what nobody gets in by."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from joserfc import jwt
from joserfc.jwk import RSAKey
from pytest_django.fixtures import Settings

from controlplane.accounts.models import Identity, ProviderSignIn, RoleGrant, SpentState
from controlplane.config.oidc import Oidc
from controlplane.journal.models import AuditEvent
from tests.services.oidc.conftest import Later, begun, came_back, configured, rights, sign_in, with_provider
from tests.support.openid_provider import CLIENT_ID, Provider
from tests.web.conftest import USERS

Claims = dict[str, Any]


def whose(browser: Client) -> str:
    """The name under which a browser is signed in; empty where it is not."""
    user = browser.get("/login").wsgi_request.user
    return str(user.get_username()) if user.is_authenticated else ""


def test_sign_in__first_time__makes_an_account_with_the_roles_of_the_groups(site: Oidc, provider: Provider) -> None:
    browser = sign_in(provider, provider.add("s-1", "ana", "shop", "unheard-of"))

    user = USERS.objects.get(username="ana")
    assert whose(browser) == "ana"
    assert (user.identity.issuer, user.identity.subject, user.has_usable_password()) == (provider.url, "s-1", False)
    assert rights("ana") == {("editor", "default"), ("viewer", "prod")}
    verbs = list(AuditEvent.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs[-4:] == ["user.created", "role.granted", "role.granted", "login.succeeded"]


def test_sign_in__again_with_other_groups__roles_replace_each_other_and_those_given_by_hand_stay(
    site: Oidc, provider: Provider
) -> None:
    ana = provider.add("s-1", "ana", "shop")
    sign_in(provider, ana)
    user = USERS.objects.get(username="ana")
    RoleGrant.objects.create(user=user, role="operator", environment="prod")

    ana.groups = ["platform"]
    sign_in(provider, ana)

    assert rights("ana") == {("admin", None), ("operator", "prod")}
    assert Identity.objects.count() == 1


def test_sign_in__same_name_as_a_local_account__takes_nothing_over(site: Oidc, provider: Provider) -> None:
    USERS.objects.create_superuser("Admin", email="boss@example.org", password="correct horse battery")

    browser = sign_in(provider, provider.add("s-9", "admin"))

    assert whose(browser) == "admin-2"
    assert rights("admin-2") == set()
    assert not Identity.objects.filter(user__username="Admin").exists()


def test_sign_in__same_subject_of_another_issuer__is_another_person(
    site: Oidc, provider: Provider, settings: Settings
) -> None:
    ana = provider.add("s-1", "ana", "platform")
    elsewhere = USERS.objects.create_user("old-ana")
    Identity.objects.create(user=elsewhere, issuer="https://elsewhere.example", subject="s-1")
    RoleGrant.objects.create(user=elsewhere, role="admin", environment="")

    browser = sign_in(provider, ana)

    assert whose(browser) == "ana"
    assert rights("old-ana") == set()


def test_sign_in__renamed_at_the_provider__is_the_same_account(site: Oidc, provider: Provider) -> None:
    ana = provider.add("s-1", "ana", "shop")
    sign_in(provider, ana)
    ana.name = "anna"

    assert whose(sign_in(provider, ana)) == "ana"


def test_sign_in__account_turned_off__says_so_and_lets_nobody_in(site: Oidc, provider: Provider) -> None:
    ana = provider.add("s-1", "ana", "shop")
    sign_in(provider, ana)
    USERS.objects.filter(username="ana").update(is_active=False)
    browser = Client()

    answer = came_back(browser, provider.signed_in(begun(browser), ana))

    assert answer.status_code == 403
    assert "is turned off in Parley" in answer.content.decode()
    assert whose(browser) == ""


def test_sign_in__groups_only_at_userinfo__are_asked_for_there(site: Oidc, provider: Provider) -> None:
    provider.claims_in_token = False

    sign_in(provider, provider.add("s-1", "ana", "shop"))

    assert rights("ana") == {("editor", "default"), ("viewer", "prod")}


def test_sign_in__secret_goes_in_the_form_where_the_provider_wants_that(site: Oidc, provider: Provider) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}

    assert whose(sign_in(provider, provider.add("s-1", "ana"))) == "ana"


@pytest.mark.parametrize(
    ("asked", "led"),
    [
        ("/users", "/users"),
        ("https://evil.example/", "/"),
        ("//evil.example/x", "/"),
        ("javascript:alert(1)", "/"),
        ("/\\evil.example", "/"),
        ("/" + "x" * 5_000, "/"),
        ("/" + "\u4eba" * 400, "/"),
        ("/users?text=" + '"' * 900, "/users?text=" + "%22" * 900),
    ],
)
def test_sign_in__page_to_go_to__is_one_of_our_own(site: Oidc, provider: Provider, asked: str, led: str) -> None:
    browser, ana = Client(), provider.add("s-1", "ana")

    answer = came_back(browser, provider.signed_in(begun(browser, asked), ana))

    assert (answer.status_code, answer["Location"]) == (302, led)


def test_begin__sends_what_binds_the_answer_to_this_browser(site: Oidc, provider: Provider) -> None:
    browser = Client()

    said = {name: found[0] for name, found in parse_qs(urlsplit(begun(browser)).query).items()}

    assert (said["response_type"], said["client_id"], said["code_challenge_method"]) == ("code", CLIENT_ID, "S256")
    assert said["redirect_uri"] == "http://127.0.0.1:8000/login/oidc/callback"
    assert min(len(said[name]) for name in ("state", "nonce", "code_challenge")) >= 43
    cookie = browser.cookies["parley-oidc"]
    assert (bool(cookie["httponly"]), cookie["samesite"], cookie["max-age"]) == (True, "Lax", 600)
    opened = base64.urlsafe_b64decode(cookie.value)
    assert all(said[name].encode() not in opened for name in ("state", "nonce"))
    assert not SpentState.objects.exists()
    assert "sessionid" not in browser.cookies


def test_session__new_key__is_not_the_one_that_was_there_before(site: Oidc, provider: Provider) -> None:
    browser = Client()
    session = browser.session
    session["fixed"] = "1"
    session.save()
    browser.cookies["sessionid"] = str(session.session_key)

    sign_in(provider, provider.add("s-1", "ana"), browser)

    assert browser.session.session_key != session.session_key


def test_tokens__in_the_database__are_sealed_and_in_no_log(
    site: Oidc, provider: Provider, capfd: pytest.CaptureFixture[str]
) -> None:
    sign_in(provider, provider.add("s-1", "ana", "shop"))

    token = provider.last_token
    row = ProviderSignIn.objects.get()
    kept = bytes(row.sealed) + repr(list(AuditEvent.objects.values())).encode()
    said = capfd.readouterr()
    for secret in (token["access_token"], token["refresh_token"], token["id_token"]):
        assert secret.encode() not in kept
        assert secret not in said.out + said.err


# --- Forged and replayed ---------------------------------------------------------------------------------------------


def unsigned(header: Claims, claims: Claims, _key: RSAKey) -> str:
    return f"{_part({**header, 'alg': 'none'})}.{_part(claims)}."


def by_public_key(header: Claims, claims: Claims, key: RSAKey) -> str:
    """HS256, with the public key for a secret: what takes whatever `alg` says would believe it."""
    said = f"{_part({**header, 'alg': 'HS256'})}.{_part(claims)}"
    mac = hmac.new(key.as_pem(private=False), said.encode(), hashlib.sha256).digest()
    return f"{said}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def by_client_secret(header: Claims, claims: Claims, _key: RSAKey) -> str:
    said = f"{_part({**header, 'alg': 'HS256'})}.{_part(claims)}"
    mac = hmac.new(b"a secret of the client", said.encode(), hashlib.sha256).digest()
    return f"{said}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def by_another_key(header: Claims, claims: Claims, _key: RSAKey) -> str:
    return jwt.encode(header, claims, RSAKey.generate_key(2048))


def by_its_own_key(header: Claims, claims: Claims, _key: RSAKey) -> str:
    """With a key that the token itself brings along."""
    other = RSAKey.generate_key(2048)
    return jwt.encode({**header, "jwk": other.as_dict(private=False)}, claims, other)


def spoiled(header: Claims, claims: Claims, key: RSAKey) -> str:
    head, _body, signature = jwt.encode(header, claims, key).split(".")
    return f"{head}.{_part({**claims, 'groups': ['platform']})}.{signature}"


def saying(**different: object) -> Callable[[Claims, Claims, RSAKey], str]:
    def forge(header: Claims, claims: Claims, key: RSAKey) -> str:
        said = {**claims, **different}
        return jwt.encode(header, {name: value for name, value in said.items() if value is not None}, key)

    return forge


def _part(value: Claims) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


NOW = int(time.time())
FORGED = {
    "alg none": unsigned,
    "HS256 by the public key": by_public_key,
    "HS256 by the client's secret": by_client_secret,
    "another key": by_another_key,
    "a key it brings along": by_its_own_key,
    "altered claims": spoiled,
    "another issuer": saying(iss="https://evil.example"),
    "no issuer": saying(iss=None),
    "another audience": saying(aud=["somebody-else"]),
    "no audience": saying(aud=None),
    "two audiences and no azp": saying(aud=["somebody-else", CLIENT_ID], azp=None),
    "azp of somebody else": saying(aud=[CLIENT_ID, "somebody-else"], azp="somebody-else"),
    "another nonce": saying(nonce="of another sign-in"),
    "no nonce": saying(nonce=None),
    "expired": saying(exp=NOW - 3_600, iat=NOW - 7_200),
    "no expiry": saying(exp=None),
    "expiry that is no number": saying(exp="never"),
    "issued tomorrow": saying(iat=NOW + 86_400, exp=NOW + 90_000),
    "no time of issue": saying(iat=None),
    "no subject": saying(sub=None),
    "empty subject": saying(sub=""),
    "subject that is no text": saying(sub=7),
    "subject too long": saying(sub="x" * 256),
    "hash of another access token": saying(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "no token at all": lambda *_: "",
    "something else": lambda *_: "not.a.token",
    "a token within a token": lambda *_: "a.b.c.d.e",
}


@pytest.mark.parametrize("forged", FORGED)
def test_id_token__forged__signs_nobody_in(site: Oidc, provider: Provider, forged: str) -> None:
    browser, ana = Client(), provider.add("s-1", "ana", "platform")
    provider.forge = FORGED[forged]

    answer = came_back(browser, provider.signed_in(begun(browser), ana))

    assert answer.status_code == 403, answer.content.decode()
    assert whose(browser) == ""
    assert not Identity.objects.exists()
    assert not ProviderSignIn.objects.exists()
    last = AuditEvent.objects.latest("pk")
    assert (last.verb, last.subject) == ("login.failed", "unknown user")


def test_id_token__right_one_by_the_same_way__signs_in(site: Oidc, provider: Provider) -> None:
    """What the forged ones are compared with: the way by which they are made spoils nothing by itself."""
    provider.forge = saying()

    assert whose(sign_in(provider, provider.add("s-1", "ana"))) == "ana"


def test_answer__replayed_in_the_same_browser__gives_nothing(site: Oidc, provider: Provider) -> None:
    browser = Client()
    url = provider.signed_in(begun(browser), provider.add("s-1", "ana"))
    kept = browser.cookies["parley-oidc"].value
    assert came_back(browser, url).status_code == 302
    thief = Client()
    thief.cookies["parley-oidc"] = kept

    again = came_back(thief, url)

    assert (again.status_code, whose(thief)) == (422, "")


def test_state__replayed_with_a_fresh_code__gives_nothing(site: Oidc, provider: Provider) -> None:
    browser, ana = Client(), provider.add("s-1", "ana")
    begin = begun(browser)
    kept = browser.cookies["parley-oidc"].value
    assert came_back(browser, provider.signed_in(begin, ana)).status_code == 302
    provider.spent.clear()  # a provider that remembers no nonce
    thief = Client()
    thief.cookies["parley-oidc"] = kept

    again = came_back(thief, provider.signed_in(begin, ana))

    assert (again.status_code, whose(thief)) == (422, "")


def test_answer__in_a_browser_that_did_not_begin__gives_nothing(site: Oidc, provider: Provider) -> None:
    url = provider.signed_in(begun(Client()), provider.add("s-1", "ana"))
    fresh, other = Client(), Client()
    begun(other)

    assert [came_back(each, url).status_code for each in (fresh, other)] == [422, 422]
    assert (whose(fresh), whose(other)) == ("", "")
    assert provider.asked["/token"] == 0


def test_code__of_somebody_else_under_ones_own_state__fails_by_its_verifier(site: Oidc, provider: Provider) -> None:
    victim, thief = Client(), Client()
    stolen = parse_qs(urlsplit(provider.signed_in(begun(victim), provider.add("s-1", "ana"))).query)["code"][0]
    own = parse_qs(urlsplit(begun(thief)).query)["state"][0]

    answer = came_back(thief, f"/login/oidc/callback?{urlencode({'code': stolen, 'state': own})}")

    assert (answer.status_code, whose(thief)) == (403, "")
    assert provider.asked["/token"] == 1


@pytest.mark.parametrize("spoil", ["cut", "made up", "of another key", "old"])
def test_cookie__that_parley_did_not_seal_lately__begins_nothing(
    site: Oidc, provider: Provider, spoil: str, later: Later
) -> None:
    browser = Client()
    url = provider.signed_in(begun(browser), provider.add("s-1", "ana"))
    kept = browser.cookies["parley-oidc"].value
    match spoil:
        case "cut":
            browser.cookies["parley-oidc"] = kept[:-8]
        case "made up":
            state = parse_qs(urlsplit(url).query)["state"][0]
            browser.cookies["parley-oidc"] = base64.urlsafe_b64encode(json.dumps([state]).encode()).decode()
        case "of another key":
            browser.cookies["parley-oidc"] = "AQ" + "A" * len(kept[2:])
        case "old":
            later(601)

    assert came_back(browser, url).status_code == 422
    assert whose(browser) == ""


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        ({"error": "access_denied", "error_description": "<b>no</b>"}, 403, "was cancelled or is not allowed for you"),
        ({"error": "server_error"}, 403, "was cancelled or is not allowed for you"),
        ({}, 403, "did not confirm"),
        ({"code": "made-up"}, 403, "did not confirm"),
        ({"code": "x" * 5_000}, 403, "did not confirm"),
        ({"code": "a\nb"}, 403, "did not confirm"),
        ({"code": "any", "iss": "https://evil.example"}, 403, "did not confirm"),
    ],
)
def test_answer__that_is_no_good_code__is_told_in_words_and_never_in_the_provider_s(
    site: Oidc, provider: Provider, said: dict[str, str], status: int, words: str
) -> None:
    browser = Client()
    state = parse_qs(urlsplit(begun(browser)).query)["state"][0]

    answer = came_back(browser, f"/login/oidc/callback?{urlencode({**said, 'state': state})}")

    assert answer.status_code == status
    assert words in answer.content.decode()
    assert "<b>no</b>" not in answer.content.decode()
    assert whose(browser) == ""


def test_answer__provider_that_names_itself_beside_codes__must_do_so(site: Oidc, provider: Provider) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    browser, ana = Client(), provider.add("s-1", "ana")
    without = came_back(browser, provider.signed_in(begun(browser), ana))

    named = provider.signed_in(begun(browser), ana) + "&" + urlencode({"iss": provider.url})

    assert without.status_code == 403
    assert came_back(browser, named).status_code == 302


def test_attempts__too_many_from_one_address__429_before_the_provider_is_asked(
    site: Oidc, provider: Provider, settings: Settings
) -> None:
    with_provider(settings, configured(provider), logins_per_address_per_min=3)
    codes = []
    for _ in range(5):
        browser = Client()
        state = parse_qs(urlsplit(begun(browser)).query)["state"][0]
        codes.append(came_back(browser, f"/login/oidc/callback?{urlencode({'code': 'guess', 'state': state})}"))

    assert [each.status_code for each in codes] == [403, 403, 403, 429, 429]
    assert codes[-1]["Retry-After"] == "60"
    assert provider.asked["/token"] == 3


# --- What it costs, and what a provider that is down costs -----------------------------------------------------------


@pytest.mark.parametrize("path", ["/token", "/keys", "/userinfo"])
@pytest.mark.parametrize("how", ["fails", "is silent"])
def test_sign_in__provider_down_in_the_midst_of_it__signs_nobody_in_until_it_is_back(
    site: Oidc, provider: Provider, settings: Settings, path: str, how: str
) -> None:
    with_provider(settings, site, oidc_timeout_ms=300)
    provider.claims_in_token = path != "/userinfo"
    browser, ana = Client(), provider.add("s-1", "ana", "shop")
    url = provider.signed_in(begun(browser), ana)
    if how == "fails":
        provider.answers[path] = (500, b"")
    else:
        provider.silent.add(path)

    answer = came_back(browser, url)

    assert answer.status_code == 503
    assert "cannot be asked now. Try again in a minute" in answer.content.decode()
    assert (whose(browser), Identity.objects.count(), ProviderSignIn.objects.count()) == ("", 0, 0)
    provider.answers.clear()
    provider.let_go()
    with_provider(settings, site)  # the wait after a failure counts real time
    assert whose(sign_in(provider, ana, browser)) == "ana"


def test_requests__without_a_provider__ask_the_database_nothing_about_one(
    site: Oidc, provider: Provider, settings: Settings
) -> None:
    with_provider(settings, None)
    browser = Client()
    browser.force_login(USERS.objects.create_superuser("admin"))

    with CaptureQueriesContext(connection) as asked:
        for path in ("/", "/account", "/api/v1/environments/default/resources"):
            assert browser.get(path).status_code == 200

    # Only the page that says where an account comes from joins the table that tells it.
    about = [each["sql"] for each in asked if "identity" in each["sql"] or "providersignin" in each["sql"]]
    assert [sql for sql in about if "LEFT OUTER JOIN" not in sql] == []
    assert len(about) == 1


def test_requests__of_an_account_of_parleys_own__ask_the_provider_nothing(
    site: Oidc, provider: Provider, settings: Settings
) -> None:
    browser = Client()
    browser.force_login(USERS.objects.create_superuser("admin"))

    assert browser.get("/users").status_code == 200
    assert browser.get("/api/v1/environments/default/resources").status_code == 200
    assert sum(provider.asked.values()) == 0


# --- Keys ------------------------------------------------------------------------------------------------------------


def test_keys__rotated_at_the_provider__are_asked_for_again_once_a_token_names_a_new_one(
    site: Oidc, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = provider.add("s-1", "ana")
    sign_in(provider, ana)
    sign_in(provider, ana)
    assert provider.asked["/keys"] == 1

    from controlplane.oidc.provider import provider_of  # noqa: PLC0415 - the one that the site uses now

    real = time.time
    monkeypatch.setattr(provider_of(site), "clock", lambda: real() + 31)
    provider.rotate()

    assert whose(sign_in(provider, ana)) == "ana"
    assert provider.asked["/keys"] == 2


def test_keys__unknown_again_and_again__are_asked_for_no_more_than_twice_a_minute(
    site: Oidc, provider: Provider
) -> None:
    ana = provider.add("s-1", "ana")
    sign_in(provider, ana)
    provider.forge = by_another_key

    for _ in range(5):
        browser = Client()
        assert came_back(browser, provider.signed_in(begun(browser), ana)).status_code == 403

    assert provider.asked["/keys"] == 1
    assert provider.asked["/.well-known/openid-configuration"] == 1
