"""Asks the identity provider: for its configuration and keys, about a code that came back, and again later.

authlib says what is sent and what is in the answer, `outside.asking` how long and how much is waited for. What was
learned of the provider is kept in the process for an hour; its keys are asked for earlier when a token names one that
is not among them, at most twice a minute, so that nobody makes Parley ask by sending tokens.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import structlog
from authlib.oauth2.client import OAuth2Client
from django.conf import settings
from joserfc.jwk import KeySet

from controlplane.config.oidc import Oidc
from controlplane.oidc.claims import Disbelieved, KeyUnknown, groups_of, id_token_claims, subject_of
from controlplane.oidc.discovery import Metadata, configuration_url, keys_of, metadata_of
from controlplane.outside.asking import UnansweredError, ask
from controlplane.outside.exchanging import Answered
from controlplane.outside.reaching import Deadline

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CALLBACK_PATH: Final = "/login/oidc/callback"
_MAX_ANSWER_BYTES: Final = 262_144  # a configuration has some 10 KiB, tokens with hundreds of groups some 50
_KEPT_S: Final = 3_600.0
_KEYS_AGAIN_S: Final = 30.0
# After it did not answer, nobody waits for it for a moment: a crowd would hold every thread.
_PAUSE_S: Final = 5.0
_AT_ONCE: Final = 8
# RFC 6749 section 5.2, OpenID Connect Core 1.0 section 3.1.2.6: these are about the person or their code. All others
# are about Parley or the provider, and say nothing of the person.
_ABOUT_THE_PERSON: Final = frozenset(
    {"invalid_grant", "access_denied", "login_required", "interaction_required", "consent_required"}
)


class ProviderAway(Exception):
    """The identity provider cannot be asked now: it is down, slow, or its answers cannot be used. Says nothing of any
    person. The text is for the log.
    """


class _AnsweredAtOnce(ProviderAway):
    """The identity provider cannot be asked, and said so without letting anybody wait."""


class ProviderRefuses(Exception):
    """The identity provider was asked and does not vouch for the person, or what came in its name is not believed. The
    text is for the log and the audit log, and holds no token.
    """


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the provider gave: to ask it again (`refresh`, `access`), and to end its session (`identity`, the id token);
    empty where it gave none.
    """

    refresh: str = field(repr=False)
    access: str = field(repr=False)
    identity: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Told:
    """What the provider says of a person now: who they are, claims, their groups, and its tokens."""

    subject: str
    claims: Mapping[str, object]
    groups: frozenset[str]
    tokens: Tokens


class Provider:
    """The identity provider, as one process knows it; safe to use from several threads. `callback`: where it sends
    people back to; `timeout_s`: for one question; `clock`: Unix time.
    """

    def __init__(self, oidc: Oidc, callback: str, timeout_s: float, clock: Callable[[], float] = time.time) -> None:
        self.oidc = oidc
        self._callback = callback
        self._timeout_s = timeout_s
        self.clock = clock
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._away_until = 0.0

    def begin(self, *, state: str, nonce: str, verifier: str, again: bool = False) -> str:
        """The URL at which the provider signs somebody in and sends them back with a code. `verifier`: what proves
        later that whoever shows the code began here (PKCE). `again`: also somebody whom the provider knows already has
        to prove who they are, and it says when they did. Raises ProviderAway.
        """
        metadata = self._at_hand()
        # OpenID Connect Core 1.0 section 3.1.2.1: with `max_age`, an id token must have `auth_time`.
        anew = {"prompt": "login", "max_age": "0"} if again else {}
        url, _state = self._client(metadata, Deadline(0)).create_authorization_url(  # sends nothing
            metadata.authorization_endpoint, state=state, code_verifier=verifier, nonce=nonce, **anew
        )
        return str(url)

    def names_issuer(self) -> bool:
        """Whether the provider puts its issuer beside each code. Raises ProviderAway."""
        return self._at_hand().names_issuer

    def redeem(self, *, code: str, verifier: str, nonce: str) -> Told:
        """What the provider says of whoever came back with this code. Raises ProviderAway, ProviderRefuses."""
        with self._asking() as deadline:
            metadata = self._known(deadline)
            given = self._tokens(
                metadata,
                deadline,
                lambda client: client.fetch_token(
                    metadata.token_endpoint, grant_type="authorization_code", code=code, code_verifier=verifier
                ),
            )
            claims = self._believed(given, metadata, deadline, nonce=nonce)
            subject, tokens = subject_of(claims), _tokens_of(given, Tokens("", "", ""))
            # Core section 5.4: what a scope asks for may stand in either of the two.
            if "preferred_username" not in claims or groups_of(claims, self.oidc.groups_claim) is None:
                claims = {**self._userinfo(tokens.access, subject, metadata, deadline), **claims}
            return Told(subject, claims, groups_of(claims, self.oidc.groups_claim) or frozenset(), tokens)

    def again(self, tokens: Tokens, *, subject: str, keep: Callable[[Tokens], None]) -> Told:
        """What the provider says now of a person who signed in before; `tokens` are from then. `keep` is called with
        new ones as soon as there are any: the old ones may be good no longer. Raises ProviderAway and ProviderRefuses.
        """
        with self._asking() as deadline:
            metadata = self._known(deadline)
            if not tokens.refresh and not (tokens.access and metadata.userinfo_endpoint):
                raise _AnsweredAtOnce("it gave neither a refresh token nor a userinfo endpoint: nothing to ask by")
            claims: Mapping[str, object] = {}
            if tokens.refresh:
                given = self._tokens(
                    metadata,
                    deadline,
                    lambda client: client.refresh_token(metadata.token_endpoint, refresh_token=tokens.refresh),
                )
                tokens = _tokens_of(given, tokens)
                keep(tokens)
                if given.get("id_token"):
                    claims = self._believed(given, metadata, deadline)
                    _same_person(claims, subject)
            if groups_of(claims, self.oidc.groups_claim) is None:
                claims = {**self._userinfo(tokens.access, subject, metadata, deadline), **claims}
            return Told(subject, claims, groups_of(claims, self.oidc.groups_claim) or frozenset(), tokens)

    def end_url(self, tokens: Tokens, *, back_to: str) -> str:
        """The URL at which the provider ends its own session, too, and sends people back; empty where it has none or
        cannot be asked.
        """
        try:
            endpoint = self._at_hand().end_session_endpoint
        except ProviderAway:
            return ""
        if not endpoint:
            return ""
        hint = {"id_token_hint": tokens.identity} if tokens.identity else {}
        said = {"client_id": self.oidc.client_id, "post_logout_redirect_uri": back_to, **hint}
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(said)}"

    @contextmanager
    def _asking(self) -> Iterator[Deadline]:
        """The time for one question, which may take several requests. What is wrong with the provider is told in the
        log, and nobody else waits for it for a moment.
        """
        if 0 < self._away_until - self.clock() <= _PAUSE_S:  # more: the clock was set back
            raise ProviderAway("it did not answer a moment ago")
        deadline = Deadline(self._timeout_s)
        if not self._turns.acquire(timeout=self._timeout_s):
            raise ProviderAway(f"{_AT_ONCE} questions wait for it already")
        try:
            yield deadline
        except (ProviderAway, UnansweredError, TimeoutError) as error:
            if not isinstance(error, _AnsweredAtOnce):
                self._away_until = self.clock() + _PAUSE_S
            log.warning("oidc.provider_away", issuer=self.oidc.issuer, reason=str(error)[:500])
            raise ProviderAway(str(error)) from None
        except Disbelieved as error:
            raise ProviderRefuses(str(error)) from None
        finally:
            self._turns.release()

    def _at_hand(self) -> Metadata:
        """What is known of the provider; it is asked where that is too old."""
        kept = self._metadata
        if kept is not None and self.clock() - kept[0] <= _KEPT_S:
            return kept[1]
        with self._asking() as deadline:
            return self._known(deadline)

    def _known(self, deadline: Deadline) -> Metadata:
        with self._one_at_a_time(deadline):
            if self._metadata is None or self.clock() - self._metadata[0] > _KEPT_S:
                document = self._document(configuration_url(self.oidc), deadline)
                self._metadata = (self.clock(), _usable(lambda: metadata_of(document, self.oidc)))
            return self._metadata[1]

    def _keys_known(self, metadata: Metadata, deadline: Deadline, *, older_than_s: float = _KEPT_S) -> KeySet:
        with self._one_at_a_time(deadline):
            if self._keys is None or self.clock() - self._keys[0] > older_than_s:
                document = self._document(metadata.jwks_uri, deadline)
                self._keys = (self.clock(), _usable(lambda: keys_of(document)))
            return self._keys[1]

    @contextmanager
    def _one_at_a_time(self, deadline: Deadline) -> Iterator[None]:
        if not self._lock.acquire(timeout=max(0.0, deadline.left_s())):
            raise ProviderAway("it is being asked for its configuration and does not answer")
        try:
            yield
        finally:
            self._lock.release()

    def _document(self, url: str, deadline: Deadline) -> object:
        answer = ask("GET", url, {"Accept": "application/json"}, deadline, at_most_bytes=_MAX_ANSWER_BYTES)
        if answer.status != 200:
            raise ProviderAway(f"{url} answered {answer.status}")
        return _json(answer, url)

    def _believed(
        self, given: Mapping[str, object], metadata: Metadata, deadline: Deadline, *, nonce: str = ""
    ) -> Mapping[str, object]:
        """The claims of the id token that was given; with keys that are asked for again where it may be signed by a new
        one.
        """

        def judged(keys: KeySet) -> Mapping[str, object]:
            return id_token_claims(
                given.get("id_token"),
                keys=keys,
                algorithms=metadata.algorithms,
                oidc=self.oidc,
                now=self.clock(),
                nonce=nonce,
                access_token=_text(given, "access_token"),
            )

        try:
            return judged(self._keys_known(metadata, deadline))
        except KeyUnknown:
            return judged(self._keys_known(metadata, deadline, older_than_s=_KEYS_AGAIN_S))

    def _userinfo(self, access: str, subject: str, metadata: Metadata, deadline: Deadline) -> Mapping[str, object]:
        """What the userinfo endpoint says of the person; nothing where there is no such endpoint."""
        url = metadata.userinfo_endpoint
        if not access or not url:
            return {}
        headers = {"Accept": "application/json", "Authorization": f"Bearer {access}"}
        answer = ask("GET", url, headers, deadline, at_most_bytes=_MAX_ANSWER_BYTES)
        if answer.status in (401, 403):
            raise ProviderRefuses("its userinfo endpoint does not take the access token any more")
        if answer.status != 200:
            raise ProviderAway(f"{url} answered {answer.status}")
        claims = _json(answer, url)
        if not isinstance(claims, Mapping):
            raise ProviderAway(f"{url} answered no JSON object")
        _same_person(claims, subject)
        return claims

    def _tokens(
        self, metadata: Metadata, deadline: Deadline, question: Callable[[OAuth2Client], Mapping[str, object]]
    ) -> Mapping[str, object]:
        try:
            return question(self._client(metadata, deadline))
        except _TokenError as error:
            if str(error.error) in _ABOUT_THE_PERSON:
                raise ProviderRefuses(f"its token endpoint says {error.error}") from None
            raise _AnsweredAtOnce(f"its token endpoint refuses Parley: {error}") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ProviderAway(f"its token endpoint answered what cannot be read: {error}") from None

    def _client(self, metadata: Metadata, deadline: Deadline) -> OAuth2Client:
        client = OAuth2Client(
            _Session(deadline),
            client_id=self.oidc.client_id,
            client_secret=self.oidc.client_secret or None,
            token_endpoint_auth_method=metadata.client_auth,
            scope=" ".join(self.oidc.scopes),
            redirect_uri=self._callback,
            code_challenge_method="S256",
        )
        client.oauth_error_class = _TokenError
        return client


class _TokenError(Exception):
    """What a token endpoint says is wrong (RFC 6749 section 5.2)."""

    def __init__(self, error: object = "", description: object = "") -> None:
        super().__init__(f"{error!r} {description!r}"[:300])
        self.error = error


class _Session:
    """What authlib sends its requests by: within the deadline, and never by a redirect."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def post(self, url: str, *, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> "_Response":
        """Send a form, with what proves who Parley is."""
        url, sent, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        answer = ask("POST", url, sent, self._deadline, at_most_bytes=_MAX_ANSWER_BYTES, body=body.encode())
        return _Response(url, answer)


class _Response:
    """An answer, in the form in which authlib reads it."""

    def __init__(self, url: str, answer: Answered) -> None:
        self._url = url
        self._answer = answer

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        return self._answer.status

    def json(self) -> object:
        """What the body says: tokens, or what is wrong. Raises ValueError, and ProviderAway for a status other than 200
        that does not say what is wrong: it is no word about anybody.
        """
        found: object = json.loads(self._answer.body)
        if self.status_code != 200 and not (isinstance(found, dict) and "error" in found):
            raise ProviderAway(f"{self._url} answered {self.status_code}")
        return found

    def raise_for_status(self) -> None:
        """Raise ProviderAway for a status that is none of a token or of a refusal that can be read."""
        if self.status_code >= 400:
            raise ProviderAway(f"{self._url} answered {self.status_code}")


def provider_of(oidc: Oidc) -> Provider:
    """The provider, as this process knows it."""
    config = settings.PARLEY
    return _provider(oidc, f"{config.public_url}{CALLBACK_PATH}", config.limits.oidc_timeout_ms / 1000)


@lru_cache(maxsize=4)
def _provider(oidc: Oidc, callback: str, timeout_s: float) -> Provider:
    return Provider(oidc, callback, timeout_s)


def _usable(read: Callable[[], T]) -> T:
    try:
        return read()
    except ValueError as error:
        raise ProviderAway(str(error)) from None


def _json(answer: Answered, url: str) -> object:
    try:
        found: object = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise ProviderAway(f"{url} answered no JSON") from None
    return found


def _same_person(claims: Mapping[str, object], subject: str) -> None:
    # Core section 5.3.2 and 12.2: anything else belongs to somebody else.
    if subject_of(claims) != subject:
        raise ProviderRefuses("it answered about another person")


def _tokens_of(given: Mapping[str, object], before: Tokens) -> Tokens:
    return Tokens(
        refresh=_text(given, "refresh_token") or before.refresh,
        access=_text(given, "access_token") or before.access,
        identity=_text(given, "id_token") or before.identity,
    )


def _text(given: Mapping[str, object], name: str) -> str:
    found = given.get(name)
    return found if isinstance(found, str) else ""
