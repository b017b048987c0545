"""Tokens: of the API for people and pipelines, and of data planes. Each is shown once; only its hash is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import ClassVar, Final, TypeVar

from django.contrib import messages
from django.db.models import F, OrderBy, Q, QuerySet
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
from controlplane.console.places import Place, Reach, Section
from controlplane.console.posted import number_of, reason_of
from controlplane.console.row_lists import RowsPage
from controlplane.console.sudo import sudo
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.tables import Column
from xdscore.environment_choice import EnvironmentChoice

Row = TypeVar("Row", ApiToken, ClientToken)

API: Final = "api"
CLIENT: Final = "client"
_SCOPE_ROWS: Final = 4  # a token with more is made over REST
_MAX_TEXT: Final = 150
_SOON: Final = timedelta(days=14)
_DAYS: Final = {"7": 7, "30": 30, "90": 90, "365": 365}
_STATES: Final = ("good", "ending", "ended")
_API_ORDERS: Final = {"name": "name", "made": "created_at", "ends": "expires_at", "used": "last_used_on"}
_CLIENT_ORDERS: Final = {"name": "subject", "made": "created_at", "ends": "expires_at"}


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


class TokensPage(RowsPage):
    """The page with tokens, of the API or (`?kind=client`) of data planes: those that the user administers; for users
    who administer nothing, their own.
    """

    template = "people/tokens.html"
    needs = {"GET": None, "POST": None}
    frame = Frame(
        "tokens",
        "tokens",
        "tokens",
        (
            Filter("text", "Name or subject", max_chars=_MAX_TEXT, width="wide"),
            Filter("kind", "Kind", Kind.CHOICE, options((API, CLIENT)), hidden=True),
            Filter("state", "State", Kind.CHOICE, options(_STATES)),
            Filter("by", "Made by, or of", max_chars=_MAX_TEXT),
            SINCE,
            UNTIL,
        ),
        (
            Order("name", "Name"),
            Order("made", "Made", falls=True),
            Order("ends", "Ends"),
            Order("used", "Last used", falls=True),
        ),
        of_environment=False,
    )
    columns: ClassVar[Sequence[Column[Line]]] = (
        Column("name", lambda each: each.name),
        Column("mark", lambda each: each.mark),
        Column("state", lambda each: each.state),
        Column("scopes", lambda each: ", ".join(each.scopes)),
        Column("owner", lambda each: each.owner),
        Column("made_at", lambda each: each.created_at),
        Column("made_by", lambda each: each.created_by),
        Column("ends_at", lambda each: each.expires_at),
        Column("ended_at", lambda each: each.revoked_at),
        Column("last_used_on", lambda each: each.last_used_on.isoformat() if each.last_used_on else None),
    )

    @sudo(lambda request: not _ends_own(request))
    def post(self, request: HttpRequest) -> HttpResponse:
        """Create a token and show it once, or revoke a token."""
        acts = {"make-api": self._make_api, "make-client": self._make_client}
        ends = {"end-api": self._end_api, "end-client": self._end_client}
        action = request.POST.get("action", "")
        try:
            if action in acts:
                return self._page(made=acts[action](request.POST))
            if action not in ends:
                raise InputInvalid("There is no such action. Nothing was changed.")
            messages.success(request, ends[action](request))
        except ControlPlaneError as error:
            return self._page(error=error)
        return redirect(request.get_full_path())

    def _page(self, *, error: ControlPlaneError | None = None, made: Made | None = None) -> HttpResponse:
        context = {
            "made": made,
            "error": error,
            **({"given": self.request.POST, "limit": limit_words(self.request.POST)} if error is not None else {}),
        }
        answer = self.answered(context, status=error.status if error else 201 if made else 200)
        if made is not None:
            answer.headers["Cache-Control"] = "no-store"
        return answer

    def rows(self, asked: Asked) -> QuerySet[ApiToken] | QuerySet[ClientToken]:
        """The tokens of the kind that the URL names. Raises Forbidden for who administers nothing and has none."""
        if not self._administers and not api_tokens_of(self.principal).exists():
            raise Forbidden(
                f"Tokens are made by who administers an environment; {self.principal.name} administers none. "
                "Ask somebody who does."
            )
        made_by = Q(created_by__icontains=asked.text("by"))
        if self._kind(asked) == API:
            made_by |= Q(owner__username__icontains=asked.text("by"))
            return _fitting(api_tokens_of(self.principal).filter(made_by), asked, _API_ORDERS)
        return _fitting(client_tokens_of(self.principal).filter(made_by), asked, _CLIENT_ORDERS)

    def line(self, row: ApiToken | ClientToken) -> Line:
        """A token as the list shows it."""
        return api_line(row) if isinstance(row, ApiToken) else _client_line(row, self._choices)

    def beside(self, asked: Asked) -> Mapping[str, object]:
        """The form for a new token."""
        return {
            "kind": self._kind(asked),
            "filtered": any(name != "kind" for name in asked.values),
            "administers": self._administers,
            "keys": self._keys,
            "everywhere": self.may(Role.ADMIN),
            "roles": [role.value for role in Role],
            "rows": range(1, _SCOPE_ROWS + 1),
            "days": _DAYS,
            "given": QueryDict(),
            "limit": limit_words(QueryDict()),
        }

    def _kind(self, asked: Asked) -> str:
        return CLIENT if self._administers and asked.text("kind") == CLIENT else API

    @property
    def _administers(self) -> bool:
        return bool(self._keys) or self.may(Role.ADMIN)

    @cached_property
    def _keys(self) -> list[str]:
        return [state.key for state in self.environments if self.principal.may(Role.ADMIN, state.key)]

    @cached_property
    def _choices(self) -> tuple[EnvironmentChoice, ...]:
        return environment_choices()

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


def _fitting(rows: QuerySet[Row], asked: Asked, orders: Mapping[str, str]) -> QuerySet[Row]:
    """The rows that fit the filters, in the order that is asked for. `orders`: the column of each order; without the
    one that is asked for, they stay as they are.
    """
    now = timezone.now()
    good = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    conditions = {"good": good, "ending": good & Q(expires_at__lte=now + _SOON), "ended": ~good}
    rows = rows.filter(conditions.get(asked.text("state"), Q()))
    if text := asked.text("text"):
        rows = rows.filter(**{f"{orders['name']}__icontains": text})
    if asked.since is not None:
        rows = rows.filter(created_at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(created_at__lte=asked.until)
    column = orders.get(asked.sort)
    if column is None:
        return rows
    # What never ends does so last; what was never used was so first.
    last = column == "expires_at"
    rises = OrderBy(F(column), nulls_last=last or None, nulls_first=not last or None)
    return rows.order_by(rises, "pk").reverse() if asked.falls else rows.order_by(rises, "pk")


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
