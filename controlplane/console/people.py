"""People: who may sign in, the roles each has where, and one's own account."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final
from zoneinfo import available_timezones

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.people import (
    Grant,
    Person,
    password_change,
    people_list,
    person_create,
    person_enable,
    person_get,
    person_of,
    person_password_renew,
    person_rename,
    person_superuser_set,
    role_take,
)
from controlplane.accounts.principal import Role
from controlplane.catalog.role_rights import role_grant
from controlplane.catalog.selectors import environment_list
from controlplane.common.errors import ControlPlaneError, InputInvalid, TooManyAttempts
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.common.zones import MAX_ZONE_CHARS
from controlplane.console.limits import limit_of_form, limit_words
from controlplane.console.pages import Page, zone_chosen
from controlplane.console.places import Place, Reach, Section
from controlplane.console.posted import number_of, reason_of
from controlplane.console.row_lists import RowsPage
from controlplane.console.sign_in import browser_keep, caller_of_request, ways_to_sign_in
from controlplane.console.sudo import sudo
from controlplane.factors.selectors import factors_of, people_without, required
from controlplane.factors.services import factors_forget
from controlplane.listing.frames import Asked, Filter, Frame, Kind, Option, Order, options
from controlplane.listing.tables import Column

ROLES: Final = (
    (Role.VIEWER, "reads everything but secrets"),
    (Role.REPORTER, "reports what data planes say of themselves, and reads"),
    (Role.REHEARSER, "has clients rehearse changes before anybody makes them, and reads"),
    (Role.EDITOR, "writes resources"),
    (Role.ACCESS_EDITOR, "decides which clients may read what"),
    (Role.OPERATOR, "rolls back, holds and quarantines"),
    (Role.ADMIN, "does everything there, and makes tokens"),
)
_MAX_TEXT: Final = 150
_STATES: Final = (
    Option("active", "may sign in"),
    Option("disabled", "may not sign in"),
    Option("superuser", "superuser"),
)


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A new password, which is shown once, on the page that follows."""

    username: str
    password: str


class UsersPage(RowsPage):
    """The page with everybody who has an account. For administrators of all environments."""

    template = "people/users.html"
    needs = {"GET": Role.ADMIN, "POST": Role.ADMIN}
    frame = Frame(
        "users",
        "users",
        "users",
        (
            Filter("text", "Name or mail address", max_chars=_MAX_TEXT, width="wide"),
            Filter("state", "State", Kind.CHOICE, _STATES),
            Filter("role", "Role", Kind.CHOICE, options([role.value for role, _ in ROLES])),
            Filter("since", "Signed in since", Kind.TIME, max_chars=40),
            Filter("until", "Not signed in since", Kind.TIME, max_chars=40),
        ),
        (Order("name", "User"), Order("joined", "Joined", falls=True), Order("seen", "Last signed in", falls=True)),
        of_environment=False,
    )
    columns: ClassVar[Sequence[Column[Person]]] = (
        Column("user", lambda each: each.username),
        Column("active", lambda each: each.active),
        Column("superuser", lambda each: each.superuser),
        Column("roles", lambda each: "; ".join(map(grant_words, each.grants))),
        Column("identity_provider", lambda each: each.issuer),
        Column("joined_at", lambda each: each.joined),
        Column("last_signed_in_at", lambda each: each.last_login),
    )

    def rows(self, asked: Asked) -> QuerySet[User]:
        """The people who fit the filters."""
        return people_list(
            text=asked.text("text"),
            state=asked.text("state"),
            role=asked.text("role"),
            since=asked.since,
            until=asked.until,
            order=asked.sort or "name",
            falls=asked.falls,
        )

    def line(self, row: User) -> Person:
        """A person as the list shows them."""
        return person_of(row)

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - of every list
        """The form for a new user, and who has no second factor."""
        return {"given": QueryDict(), "without_factor": people_without(), **ways_to_sign_in()}

    @sudo()
    def post(self, request: HttpRequest) -> HttpResponse:
        """Create an account; the page that follows shows its password once."""
        try:
            person, password = person_create(
                username=request.POST.get("username", "").strip(),
                actor=self.principal,
                reason=reason_of(request),
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self.answered({"error": error, "given": request.POST}, status=error.status)
        return user_page(self, person, told=NewPassword(person.username, password), status=201)


def grant_words(grant: Grant) -> str:
    """A role that somebody has, and where."""
    limited = ", only some resources" if grant.limit is not None else ""
    return f"{grant.role} in {grant.environment or 'all environments'}{limited}"


class UserPage(Page):
    """The page of one person: their roles, and whether they may sign in."""

    template = "people/user.html"
    needs = {"GET": Role.ADMIN, "POST": Role.ADMIN}

    def get(self, request: HttpRequest, user_id: int) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page of the person as they are now."""
        return user_page(self, person_get(user_id=user_id))

    @sudo()
    def post(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Carry out the action that the form names: give a new password or name, turn the account on or off, make or
        end a superuser, give or take a role, remove the second factors.
        """
        action = request.POST.get("action", "")
        try:
            reason = reason_of(request)
            if action == "password":
                person, password = person_password_renew(
                    user_id=user_id,
                    actor=self.principal,
                    by_superuser=self._by_superuser,
                    reason=reason,
                    request_id=self.request_id,
                )
                return user_page(self, person, told=NewPassword(person.username, password))
            messages.success(request, self._act(request, user_id, action, reason))
        except ControlPlaneError as error:
            return user_page(self, person_get(user_id=user_id), error=error, status=error.status)
        return redirect("user", user_id)

    @property
    def _by_superuser(self) -> bool:
        return bool(getattr(self.request.user, "is_superuser", False))

    def _act(self, request: HttpRequest, user_id: int, action: str, reason: str) -> str:
        if action in ("enable", "disable"):
            person = person_enable(
                user_id=user_id,
                enabled=action == "enable",
                actor=self.principal,
                by_superuser=self._by_superuser,
                reason=reason,
                request_id=self.request_id,
            )
            return f"{person.username} may {'sign in' if person.active else 'not sign in any more'}."
        if action == "rename":
            person = person_rename(
                user_id=user_id,
                username=request.POST.get("username", "").strip(),
                actor=self.principal,
                by_superuser=self._by_superuser,
                reason=reason,
                request_id=self.request_id,
            )
            return f"Their name is {person.username} from now on."
        if action in ("make-superuser", "end-superuser"):
            person = person_superuser_set(
                user_id=user_id,
                superuser=action == "make-superuser",
                actor=self.principal,
                by_superuser=self._by_superuser,
                reason=reason,
                request_id=self.request_id,
            )
            return f"{person.username} is {'a superuser' if person.superuser else 'no superuser any more'}."
        if action == "give":
            role, environment = role_of(request)
            role_grant(
                user_id=user_id,
                role=role,
                environment=environment,
                limit=limit_of_form(request.POST),
                actor=self.principal,
                by_superuser=self._by_superuser,
                reason=reason,
                request_id=self.request_id,
            )
            return f"The role {role.value} holds from now on."
        if action == "take":
            role_take(
                user_id=user_id,
                grant_id=number_of(request.POST, "grant"),
                actor=self.principal,
                by_superuser=self._by_superuser,
                reason=reason,
                request_id=self.request_id,
            )
            return "The role is gone from now on."
        if action == "forget-factors":
            ended = factors_forget(
                user_id=user_id,
                actor=self.principal,
                by_superuser=self._by_superuser,
                reason=reason,
                request_id=self.request_id,
            )
            return f"The password alone signs them in now, and {ended} session{'s' if ended != 1 else ''} ended."
        raise InputInvalid("There is no such action. Nothing was changed.")


class AccountPage(Page):
    """The page of the user's own account: their roles, and a form to change their password."""

    template = "people/account.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest, error: ControlPlaneError | None = None) -> HttpResponse:
        """The page of the user's own account; with `error`, what went wrong when the form was sent."""
        person = person_get(user_id=int(request.user.pk or 0))
        context = {
            "person": person,
            "factors": factors_of(person.id),
            "roles": role_words(),
            "zones": sorted(available_timezones()),
            "zone_chosen": request.GET.get("zone", zone_chosen(request))[:MAX_ZONE_CHARS],
            "error": error,
        }
        answer = self.page(context, status=error.status if error else 200)
        if isinstance(error, TooManyAttempts):
            answer.headers["Retry-After"] = str(error.retry_after_s)
        return answer

    def post(self, request: HttpRequest) -> HttpResponse:
        """Change the user's own password; this session stays, all others end."""
        given = request.POST
        try:
            user = password_change(
                user_id=int(request.user.pk or 0),
                old=given.get("old", ""),
                new=given.get("new", ""),
                again=given.get("again", ""),
                session=request.session.session_key or "",
                caller=caller_of_request(request),
            )
        except ControlPlaneError as error:
            return self.get(request, error)
        update_session_auth_hash(request, user)
        messages.success(request, "Your password is another one now; you are signed in here and nowhere else.")
        answer = redirect("account")
        browser_keep(answer, user)
        return answer


def user_page(
    page: Page,
    person: Person,
    *,
    told: NewPassword | None = None,
    error: ControlPlaneError | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of a person. `told`: a new password to show; `error`: what went wrong in the last action."""
    context = {
        "person": person,
        "by_superuser": bool(getattr(page.request.user, "is_superuser", False)),
        "given": page.request.POST if error is not None else QueryDict(),
        "own": page.principal.id == PrincipalId(PrincipalKind.USER, person.id),
        "told": told,
        "factors": factors_of(person.id),
        "factor_required": required(),
        "roles": role_words(),
        "keys": [state.key for state in environment_list()],
        "limit": limit_words(page.request.POST if error is not None else QueryDict()),
        "error": error,
    }
    answer = page.page(context, template=UserPage.template, status=status)
    if told is not None:
        answer.headers["Cache-Control"] = "no-store"
    return answer


def role_words() -> list[tuple[str, str]]:
    """The word of each role, and what it may."""
    return [(role.value, may) for role, may in ROLES]


def role_of(request: HttpRequest) -> tuple[Role, str]:
    """The role and the environment's key that the form names; "*" in the form stands for all environments, whose key is
    empty. Raises InputInvalid.
    """
    word, key = request.POST.get("role", ""), request.POST.get("environment", "")
    roles = {role.value: role for role in Role}
    if word not in roles:
        raise InputInvalid("Choose a role. Nothing was changed.")
    if not key:
        raise InputInvalid("Choose an environment. Nothing was changed.")
    return roles[word], "" if key == "*" else key


urlpatterns = [
    path("users", UsersPage.as_view(), name="users"),
    path("users/<int:user_id>", UserPage.as_view(), name="user"),
    path("account", AccountPage.as_view(), name="account"),
]
PLACES = (
    Place(
        Section.ADMINISTRATION,
        30,
        "Users",
        "users",
        "users",
        of_environment=False,
        also=("user", "user-access", "invitations", "people-groups", "people-group"),
        administers=Reach.EVERYTHING,
    ),
)
