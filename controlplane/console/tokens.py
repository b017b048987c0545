"""Tokens: of the API for people and pipelines, and of data planes. Each is shown once; only its hash is kept."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final, TypeVar

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone
from django.utils.timezone import make_aware

from controlplane.accounts.models import ApiToken, ClientToken
from controlplane.accounts.principal import Role, Scope
from controlplane.accounts.selectors import scopes_stored
from controlplane.accounts.services import api_token_revoke, client_token_revoke
from controlplane.accounts.token_rules import TokenKind, subject_problem, token_name_problem
from controlplane.catalog.selectors import environment_list
from controlplane.catalog.token_rights import (
    api_token_issue,
    api_token_of,
    api_tokens_of,
    client_token_issue,
    client_token_of,
    client_token_usable,
    client_token_warnings,
    client_tokens_of,
    environment_choices,
)
from controlplane.common.errors import ControlPlaneError, Forbidden, InputInvalid
from controlplane.console.limits import limit_of_form, limit_words
from controlplane.console.pages import Page
from controlplane.console.paging import Paged, paged
from controlplane.console.places import Place, Reach, Section
from controlplane.console.posted import number_of, reason_of
from controlplane.console.sudo import sudo
from xdscore.environment_choice import EnvironmentChoice

Row = TypeVar("Row", ApiToken, ClientToken)

API: Final = "api"
CLIENT: Final = "client"
_SCOPE_ROWS: Final = 4  # a token with more is made over REST
_MAX_TEXT: Final = 150
_SOON: Final = timedelta(days=14)
_DAYS: Final = {"7": 7, "30": 30, "90": 90, "365": 365}
_STATES: Final = {"good": "that are good", "ended": "that have ended"}


@dataclass(frozen=True, slots=True)
class Line:
    """A token in the list.

    `name`: its name or, for a data plane's, the identity that it proves.
    `mark`: its first characters, which are no secret.
    `state`: the key in `states.LOOKS` of its badge.
    `owner`: whose it is, in words; empty for a data plane's.
    """

    id: int
    name: str
    mark: str
    state: str
    scopes: tuple[str, ...]
    created_at: datetime
    created_by: str
    owner: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_on: date | None

    @property
    def ends(self) -> bool:
        """Whether the token can still be revoked: it is neither revoked nor expired."""
        return self.state not in ("revoked", "expired")


@dataclass(frozen=True, slots=True)
class Made:
    """A new token with its plaintext, which is shown once. `warnings`: sentences about what else a client needs to use
    it.
    """

    name: str
    text: str
    warnings: tuple[str, ...] = ()


class TokensPage(Page):
    """The page with tokens, of the API or (`?kind=client`) of data planes: those that the user administers; for users
    who administer nothing, their own.
    """

    template = "people/tokens.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """The page with the tokens of the kind that the URL names."""
        return self._page(request)

    @sudo(lambda request: not _ends_own(request))
    def post(self, request: HttpRequest) -> HttpResponse:
        """Create a token and show it once, or revoke a token."""
        acts = {"make-api": self._make_api, "make-client": self._make_client}
        ends = {"end-api": self._end_api, "end-client": self._end_client}
        action = request.POST.get("action", "")
        try:
            if action in acts:
                return self._page(request, made=acts[action](request.POST))
            if action not in ends:
                raise InputInvalid("There is no such action. Nothing was changed.")
            messages.success(request, ends[action](request))
        except ControlPlaneError as error:
            return self._page(request, error=error)
        return redirect(request.get_full_path())

    def _page(
        self, request: HttpRequest, *, error: ControlPlaneError | None = None, made: Made | None = None
    ) -> HttpResponse:
        everywhere = self.principal.may(Role.ADMIN, None)
        keys = [state.key for state in environment_list() if self.principal.may(Role.ADMIN, state.key)]
        administers = bool(keys) or everywhere
        if not administers and not api_tokens_of(self.principal).exists():
            raise Forbidden(
                f"Tokens are made by who administers an environment; {self.principal.name} administers none. "
                "Ask somebody who does."
            )
        kind = CLIENT if administers and request.GET.get("kind") == CLIENT else API
        text, state = request.GET.get("text", "").strip()[:_MAX_TEXT], request.GET.get("state", "")
        page: Paged[Line]
        if kind == API:
            page = paged(request, _fitting(api_tokens_of(self.principal), "name", text, state), api_line)
        else:
            choices = environment_choices()
            tokens = _fitting(client_tokens_of(self.principal), "subject", text, state)
            page = paged(request, tokens, lambda token: _client_line(token, choices))
        context = {
            "kind": kind,
            "page": page,
            "text": text,
            "state": state,
            "states": _STATES.items(),
            "filtered": bool(text or state in _STATES),
            "administers": administers,
            "keys": keys,
            "everywhere": everywhere,
            "roles": [role.value for role in Role],
            "rows": range(1, _SCOPE_ROWS + 1),
            "days": _DAYS,
            "given": request.POST if error is not None else QueryDict(),
            "limit": limit_words(request.POST if error is not None else QueryDict()),
            "made": made,
            "error": error,
        }
        answer = self.page(context, status=error.status if error else 201 if made else 200)
        if made is not None:
            answer.headers["Cache-Control"] = "no-store"
        return answer

    def _make_api(self, given: QueryDict) -> Made:
        name = given.get("name", "").strip()
        if problem := token_name_problem(name):
            raise InputInvalid(f"{problem} Nothing was changed.")
        text = api_token_issue(
            name=name,
            scopes=_scopes_of(given),
            actor=self.principal,
            kind=_kind_of(given),
            expires_at=_end_of(given),
            request_id=self.request_id,
        )[1]
        return Made(name, text)

    def _make_client(self, given: QueryDict) -> Made:
        subject = given.get("subject", "").strip()
        if problem := subject_problem(subject):
            raise InputInvalid(f"{problem} Nothing was changed.")
        token, text = client_token_issue(
            subject=subject,
            environment=given.get("environment", ""),
            actor=self.principal,
            expires_at=_end_of(given),
            request_id=self.request_id,
        )
        return Made(subject, text, client_token_warnings(token, environment_choices()))

    def _end_api(self, request: HttpRequest) -> str:
        reason = reason_of(request)
        token = api_token_of(self.principal, number_of(request.POST, "id"))
        api_token_revoke(token=token, actor=self.principal, reason=reason, request_id=self.request_id)
        return f"Token {token.prefix}… has ended, and so has what was made with it: whoever sends one is refused."

    def _end_client(self, request: HttpRequest) -> str:
        reason = reason_of(request)
        token = client_token_of(self.principal, number_of(request.POST, "id"))
        client_token_revoke(token=token, actor=self.principal, reason=reason, request_id=self.request_id)
        return f"Token …{token.hint} has ended: its open streams end within seconds."


def _ends_own(request: HttpRequest) -> bool:
    """Whether the form ends a token that belongs to whoever sends it: a leak should be stopped without a question."""
    given = request.POST
    return (
        given.get("action") == "end-api"
        and ApiToken.objects.filter(pk=number_of(given, "id"), owner_id=request.user.pk).exists()
    )


def _fitting(rows: QuerySet[Row], column: str, text: str, state: str) -> QuerySet[Row]:
    good = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
    if text:
        rows = rows.filter(**{f"{column}__icontains": text})
    if state in _STATES:
        rows = rows.filter(good if state == "good" else ~good)
    return rows


def api_line(token: ApiToken) -> Line:
    """A token of the API as lists show it."""
    given = scopes_stored(token)
    whole = {scope.environment for scope in given if scope.role is Role.ADMIN}
    # Who administers may act as everything else there, so that saying so adds nothing.
    scopes = tuple(scope.words for scope in given if scope.environment not in whole or scope.role is Role.ADMIN)
    return Line(
        token.pk,
        token.name,
        f"{token.prefix}…",
        _state_of(token.expires_at, token.revoked_at),
        scopes,
        token.created_at,
        token.created_by,
        _owner_of(token),
        token.expires_at,
        token.revoked_at,
        token.last_used_on,
    )


def _client_line(token: ClientToken, choices: tuple[EnvironmentChoice, ...]) -> Line:
    state = _state_of(token.expires_at, token.revoked_at)
    if state in ("good", "ending") and not client_token_usable(token, choices):
        state = "misled"
    return Line(
        token.pk,
        token.subject,
        f"…{token.hint}",
        state,
        (token.environment or "any environment",),
        token.created_at,
        token.created_by,
        "",
        token.expires_at,
        token.revoked_at,
        None,
    )


def _owner_of(token: ApiToken) -> str:
    """Whose a token is, in words."""
    if token.owner is not None:
        return f"of {token.owner.get_username()}"
    return "of the installation" if token.kind == TokenKind.INSTALLATION else "of a service"


def _kind_of(given: QueryDict) -> TokenKind:
    """The kind of token to create: a service's where the form says so, else a personal one. Raises InputInvalid."""
    chosen = given.get("kind", TokenKind.PERSONAL.value)
    if chosen not in (TokenKind.PERSONAL, TokenKind.SERVICE):
        raise InputInvalid("Say whether the token is yours or a service's. Nothing was changed.")
    return TokenKind(chosen)


def _state_of(expires_at: datetime | None, revoked_at: datetime | None) -> str:
    now = timezone.now()
    if revoked_at is not None:
        return "revoked"
    if expires_at is None or expires_at > now + _SOON:
        return "good"
    return "ending" if expires_at > now else "expired"


def _scopes_of(given: QueryDict) -> tuple[Scope, ...]:
    """The scopes of the token to create: one from each row of the form in which a role is chosen, each with the limit
    that the form has; "*" stands for all environments. Raises InputInvalid.
    """
    limits = (limit,) if (limit := limit_of_form(given)) is not None else ()
    roles = {role.value: role for role in Role}
    rows = ((given.get(f"role-{row}", ""), given.get(f"environment-{row}", "")) for row in range(1, _SCOPE_ROWS + 1))
    scopes = dict.fromkeys(
        Scope(roles[role], None if key == "*" else key, limits) for role, key in rows if role in roles
    )
    if not scopes:
        raise InputInvalid("A token needs at least one role. Nothing was changed.")
    return tuple(scopes)


def _end_of(given: QueryDict) -> datetime | None:
    """When the token to create expires: at the end of the day that the form names, or after so many days; None: never.
    Raises InputInvalid.
    """
    if day := given.get("until", "").strip():
        try:
            return make_aware(datetime.combine(date.fromisoformat(day), time.max))
        except ValueError:
            raise InputInvalid(f"'{day[:20]}' is no day; write one as 2027-01-31. Nothing was changed.") from None
    days = given.get("days", "")
    if days == "never":
        return None
    if days not in _DAYS:
        raise InputInvalid("Say how long the token is good. Nothing was changed.")
    return timezone.now() + timedelta(days=_DAYS[days])


urlpatterns = [
    path("tokens", TokensPage.as_view(), name="tokens"),
]
PLACES = (
    Place(Section.ADMINISTRATION, 20, "Tokens", "key", "tokens", of_environment=False, administers=Reach.SOMETHING),
)
