"""An OpenID provider on loopback: authlib's server behind a real HTTP server, with PKCE, rotation of keys and of
refresh tokens, groups and sign-out. It can be told to fail, to be silent, and to sign what it should not.
"""

import html
import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Request, grants
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import OpenIDCode
from authlib.oidc.core.grants.code import OpenIDToken
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID: Final = "parley"
CLIENT_SECRET: Final = "a secret of the client"
SCOPES: Final = "openid profile"
# Signs an id token otherwise than it should: header, claims and the provider's key in, the token out.
Forge = Callable[[dict[str, Any], dict[str, Any], RSAKey], str]


@dataclass
class Person:
    """Somebody who has an account at the provider."""

    sub: str
    name: str
    groups: list[str] = field(default_factory=list)
    active: bool = True

    @property
    def claims(self) -> dict[str, object]:
        return {"sub": self.sub, "preferred_username": self.name, "groups": list(self.groups)}


@dataclass
class Grant:
    """A code or a refresh token, and whose it is."""

    person: Person
    scope: str
    redirect_uri: str = ""
    nonce: str | None = None
    code_challenge: str | None = None
    code_challenge_method: str | None = None
    text: str = ""

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None:
        return None

    get_acr = get_amr = get_auth_time

    def check_client(self, _client: object) -> bool:
        return True


class Client:
    """Parley, as the provider knows it."""

    def __init__(self, redirect_uris: list[str]) -> None:
        self.redirect_uris = redirect_uris

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> str:
        return self.redirect_uris[0]

    def get_allowed_scope(self, scope: str) -> str:
        return " ".join(each for each in scope.split() if each in SCOPES.split())

    def check_redirect_uri(self, uri: str) -> bool:
        return uri in self.redirect_uris

    def check_client_secret(self, secret: str) -> bool:
        return secrets.compare_digest(secret, CLIENT_SECRET)

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, kind: str) -> bool:
        return kind == "code"

    def check_grant_type(self, kind: str) -> bool:
        return kind in ("authorization_code", "refresh_token")


@dataclass
class Provider:
    """The provider, and what a test does to it. `asked` counts requests by path; `answers` are given instead of its
    own, by path; at a path in `silent` nobody gets an answer until `let_go`. `claims_in_token`, `claims_at_userinfo`:
    whether groups stand in the id token, and at the userinfo endpoint. `metadata` is put over its configuration.
    """

    url: str = ""
    people: dict[str, Person] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    forge: Forge | None = None
    refreshes: bool = True
    claims_in_token: bool = True
    metadata: dict[str, object] = field(default_factory=dict)
    redirect_uris: list[str] = field(default_factory=lambda: ["http://127.0.0.1:8000/login/oidc/callback"])
    keys: list[RSAKey] = field(default_factory=list)
    codes: dict[str, Grant] = field(default_factory=dict)
    spent: dict[str, Grant] = field(default_factory=dict)
    access: dict[str, Person] = field(default_factory=dict)
    refresh: dict[str, Grant] = field(default_factory=dict)
    last_token: dict[str, Any] = field(default_factory=dict)
    _gate: threading.Event = field(default_factory=threading.Event)

    def add(self, sub: str, name: str, *groups: str) -> Person:
        """Give somebody an account."""
        self.people[sub] = Person(sub, name, list(groups))
        return self.people[sub]

    def rotate(self) -> None:
        """Sign with a new key from now on, and list no other."""
        self.keys = [RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})]

    def let_go(self) -> None:
        """Answer whoever waits, and everybody from now on."""
        self.silent.clear()
        self._gate.set()

    def end_sessions(self, person: Person) -> None:
        """Take back every token of somebody, as signing them out at the provider does."""
        self.refresh = {text: grant for text, grant in self.refresh.items() if grant.person is not person}
        self.access = {text: each for text, each in self.access.items() if each is not person}

    def signed_in(self, authorization_url: str, person: Person) -> str:
        """Do what a browser does in which this person signs in at the provider; returns the URL to which it is sent."""
        status, headers, body = self._server().authorize(urlsplit(authorization_url).query, person)
        assert status == 302, body
        return str(dict(headers)["Location"])

    def _server(self) -> "_Server":
        return _Server(self)


class _Request(OAuth2Request):  # type: ignore[misc]  # authlib is not typed
    def __init__(self, method: str, uri: str, given: Mapping[str, str], headers: Mapping[str, str]) -> None:
        super().__init__(method, uri, headers=dict(headers))
        self.payload = BasicOAuth2Payload(dict(given))

    @property
    def args(self) -> Any:
        return self.payload.data

    @property
    def form(self) -> Any:
        return self.payload.data


class _IdToken(OpenIDToken):  # type: ignore[misc]  # as above
    """The id token of a code, and of a refresh."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def exists_nonce(self, nonce: str, _request: object) -> bool:
        return any(each.nonce == nonce for each in self._provider.spent.values())

    def resolve_client_private_key(self, _client: object) -> RSAKey:
        return self._provider.keys[0]

    def get_client_algorithm(self, _client: object) -> str:
        return "RS256"

    def get_client_claims(self, _client: object) -> dict[str, object]:
        return {"iss": self._provider.url, "aud": [CLIENT_ID]}

    def get_encode_header(self, _client: object) -> dict[str, object]:
        return {"alg": "RS256", "kid": self._provider.keys[0].kid}

    def generate_user_info(self, user: Person, _scope: str) -> dict[str, object]:
        return user.claims if self._provider.claims_in_token else {"sub": user.sub}

    def encode_id_token(self, token: dict[str, Any], request: Any) -> str:
        right = str(super().encode_id_token(token, request))
        if self._provider.forge is None:
            return right
        key = self._provider.keys[0]
        opened = jwt.decode(right, key)
        return self._provider.forge(dict(opened.header), dict(opened.claims), key)


class _Code(_IdToken, OpenIDCode):  # type: ignore[misc]  # as above
    def __init__(self, provider: Provider) -> None:
        OpenIDCode.__init__(self, require_nonce=True)
        self._provider = provider


class _Server(AuthorizationServer):  # type: ignore[misc]  # as above
    """authlib's server, with what it leaves to others: where clients, codes and tokens are kept."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(scopes_supported=SCOPES.split())
        self.provider = provider
        self.register_grant(_code_grant(provider), [_Code(provider), CodeChallenge(required=True)])
        self.register_grant(_refresh_grant(provider), [_IdToken(provider)])
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                lambda **_: secrets.token_urlsafe(24),
                (lambda **_: secrets.token_urlsafe(24)) if provider.refreshes else None,
                300,
            ),
        )

    def authorize(self, query: str, person: Person) -> Any:
        given = {name: found[0] for name, found in parse_qs(query).items()}
        request = _Request("GET", f"{self.provider.url}/authorize?{query}", given, {})
        assert "code_challenge" in given, "PKCE is required"
        return self.create_authorization_response(request, person, self.get_consent_grant(request))

    def query_client(self, client_id: str) -> Client | None:
        return Client(self.provider.redirect_uris) if client_id == CLIENT_ID else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.provider.access[token["access_token"]] = request.user
        if "refresh_token" in token:
            self.provider.refresh[token["refresh_token"]] = Grant(request.user, SCOPES, text=token["refresh_token"])
        self.provider.last_token = token

    def send_signal(self, *_args: object, **_options: object) -> None:
        """Nobody listens."""

    def create_oauth2_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> Any:
        return status, headers, body


def _code_grant(provider: Provider) -> type:
    class Code(grants.AuthorizationCodeGrant):  # type: ignore[misc]  # as above
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]

        def save_authorization_code(self, code: str, request: Any) -> None:
            said = request.payload.data
            provider.codes[code] = Grant(
                person=request.user,
                scope=said["scope"],
                redirect_uri=said["redirect_uri"],
                nonce=said.get("nonce"),
                code_challenge=said.get("code_challenge"),
                code_challenge_method=said.get("code_challenge_method"),
                text=code,
            )

        def query_authorization_code(self, code: str, _client: object) -> Grant | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, code: Grant) -> None:
            provider.spent[code.text] = provider.codes.pop(code.text)

        def authenticate_user(self, code: Grant) -> Person | None:
            return code.person if code.person.active else None

    return Code


def _refresh_grant(provider: Provider) -> type:
    class Refresh(grants.RefreshTokenGrant):  # type: ignore[misc]  # as above
        INCLUDE_NEW_REFRESH_TOKEN = True  # each is good once
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]

        def authenticate_refresh_token(self, text: str) -> Grant | None:
            found = provider.refresh.get(text)
            return found if found is not None and found.person.active else None

        def authenticate_user(self, grant: Grant) -> Person:
            return grant.person

        def revoke_old_credential(self, grant: Grant) -> None:
            provider.refresh.pop(grant.text, None)

    return Refresh


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_POST(self) -> None:
        self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, method: str, body: bytes) -> None:
        provider, parts = self.provider, urlsplit(self.path)
        provider.asked[parts.path] += 1
        if parts.path in provider.silent:
            provider._gate.wait(20)
        if parts.path in provider.answers:
            self._send(*provider.answers[parts.path])
            return
        if parts.path == "/.well-known/openid-configuration":
            self._send(200, json.dumps({**_configuration(provider.url), **provider.metadata}).encode())
        elif parts.path == "/keys":
            self._send(200, json.dumps({"keys": [key.as_dict(private=False) for key in provider.keys]}).encode())
        elif parts.path == "/token":
            given = {name: found[0] for name, found in parse_qs(body.decode()).items()}
            request = _Request(method, f"{provider.url}{self.path}", given, dict(self.headers.items()))
            status, _headers, said = provider._server().create_token_response(request)
            self._send(status, json.dumps(said if isinstance(said, dict) else dict(said)).encode())
        elif parts.path == "/userinfo":
            person = provider.access.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
            known = person is not None and person.active
            self._send(200 if known else 401, json.dumps(person.claims if known and person else {}).encode())
        elif parts.path == "/authorize":
            self._page(method, parts.query, body)
        elif parts.path == "/end":
            self._ended(parts.query)
        else:
            self._send(404, b"{}")

    def _page(self, method: str, query: str, body: bytes) -> None:
        """A form with a button for each person; pressed, it sends the browser back."""
        if method == "POST":
            person = self.provider.people[parse_qs(body.decode())["person"][0]]
            _status, headers, _body = self.provider._server().authorize(query, person)
            self._send(302, b"", Location=dict(headers)["Location"])
            return
        buttons = "".join(
            f'<button name="person" value="{html.escape(each.sub)}">Continue as {html.escape(each.name)}</button>'
            for each in self.provider.people.values()
        )
        page = (
            f"<!doctype html><html lang=en><title>Provider</title><h1>Provider</h1><form method=post>{buttons}</form>"
        )
        self._send(200, page.encode(), **{"Content-Type": "text/html"})

    def _ended(self, query: str) -> None:
        said = {name: found[0] for name, found in parse_qs(query).items()}
        claims = jwt.decode(said["id_token_hint"], self.provider.keys[0]).claims
        self.provider.end_sessions(self.provider.people[claims["sub"]])
        self._send(302, b"", Location=f"{said['post_logout_redirect_uri']}?{urlencode({'ended': 1})}")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: the test looks at what was asked."""


def _configuration(url: str) -> dict[str, object]:
    return {
        "issuer": url,
        "authorization_endpoint": f"{url}/authorize",
        "token_endpoint": f"{url}/token",
        "userinfo_endpoint": f"{url}/userinfo",
        "end_session_endpoint": f"{url}/end",
        "jwks_uri": f"{url}/keys",
        "id_token_signing_alg_values_supported": ["RS256"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
    }


@contextmanager
def openid_provider(port: int = 0) -> Iterator[Provider]:
    """Run a provider until the block ends."""
    provider = Provider()
    provider.rotate()
    handler = type("Handler", (_Handler,), {"provider": provider})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.let_go()
        server.shutdown()
        server.server_close()
        thread.join()
