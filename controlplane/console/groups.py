"""Groups of users: who is in each, and the roles that they have by it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.groups import (
    MAX_NAME_CHARS,
    PeopleGroup,
    people_group_create,
    people_group_delete,
    people_group_get,
    people_group_list,
    people_group_of,
    people_group_rename,
    people_group_role_take,
    people_in_group,
    person_join,
    person_leave,
)
from controlplane.accounts.principal import Role
from controlplane.catalog.filtering import ordered
from controlplane.catalog.role_rights import people_group_role_grant
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.limits import limit_of_form, limit_words
from controlplane.console.pages import Page
from controlplane.console.paging import paged
from controlplane.console.people import ROLES, grant_words, role_of, role_words
from controlplane.console.posted import number_of, reason_of
from controlplane.console.row_lists import RowsPage
from controlplane.console.sudo import sudo
from controlplane.listing.frames import Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.tables import Column

_DELETED: Final = "The group {name} is deleted: nobody has a role by it any more."


class PeopleGroupsPage(RowsPage):
    """The page with all groups of users. For administrators of all environments."""

    template = "people/groups.html"
    needs = {"GET": Role.ADMIN, "POST": Role.ADMIN}
    frame = Frame(
        "user-groups",
        "groups of users",
        "people-groups",
        (
            Filter("text", "Name", max_chars=MAX_NAME_CHARS, width="wide"),
            Filter("role", "Role", Kind.CHOICE, options([role.value for role, _ in ROLES])),
        ),
        (Order("name", "Group"), Order("users", "Users", falls=True)),
        of_environment=False,
    )
    columns: ClassVar[Sequence[Column[PeopleGroup]]] = (
        Column("group", lambda each: each.name),
        Column("users", lambda each: each.people),
        Column("roles", lambda each: "; ".join(map(grant_words, each.grants))),
    )

    def rows(self, asked: Asked) -> QuerySet[Group]:
        """The groups that fit the filters."""
        rows = people_group_list(text=asked.text("text"), role=asked.text("role"))
        orders = {"name": ("name",), "users": ("people", "name")}
        return rows.order_by(*ordered(orders[asked.sort or "name"], falls=asked.falls))

    def line(self, row: Group) -> PeopleGroup:
        """A group as the list shows it."""
        return people_group_of(row)

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - of every list
        """The form for a new group."""
        return {"given": QueryDict(), "most": MAX_NAME_CHARS}

    @sudo()
    def post(self, request: HttpRequest) -> HttpResponse:
        """Make a group, and lead to its page."""
        try:
            group = people_group_create(
                name=request.POST.get("name", "").strip(),
                **self.act(reason_of(request)),
            )
        except ControlPlaneError as error:
            return self.answered({"error": error, "given": request.POST}, status=error.status)
        return redirect("people-group", group.id)


class PeopleGroupPage(Page):
    """The page of one group of users."""

    template = "people/group.html"
    needs = {"GET": Role.ADMIN, "POST": Role.ADMIN}

    def get(self, request: HttpRequest, group_id: int, error: ControlPlaneError | None = None) -> HttpResponse:
        """The page of the group as it is now; with `error`, what went wrong in the last action."""
        context = {
            "group": people_group_get(group_id=group_id),
            "page": paged(request, people_in_group(group_id=group_id), lambda user: user),
            "roles": role_words(),
            "keys": [state.key for state in self.environments],
            "limit": limit_words(request.POST),
            "given": request.POST,
            "error": error,
            "most": MAX_NAME_CHARS,
        }
        return self.page(context, status=error.status if error else 200)

    @sudo()
    def post(self, request: HttpRequest, group_id: int) -> HttpResponse:
        """Carry out the action that the form names: add or take out a person, give or take a role, rename, delete."""
        try:
            told = self._act(request, group_id, request.POST.get("action", ""), reason_of(request))
        except ControlPlaneError as error:
            return self.get(request, group_id, error)
        messages.success(request, told)
        return (
            redirect("people-groups") if request.POST.get("action") == "delete" else redirect("people-group", group_id)
        )

    def _act(self, request: HttpRequest, group_id: int, action: str, reason: str) -> str:
        given, name = request.POST, people_group_get(group_id=group_id).name
        why = self.act(reason)
        match action:
            case "add":
                person_join(group_id=group_id, username=given.get("username", "").strip(), **why)
                return "They have the roles of this group from now on."
            case "out":
                person_leave(group_id=group_id, user_id=number_of(given, "user"), **why)
                return "They have no role by this group from now on."
            case "give":
                role, environment = role_of(request)
                people_group_role_grant(
                    group_id=group_id,
                    role=role,
                    environment=environment,
                    limit=limit_of_form(given),
                    **why,
                )
                return f"The role {role.value} holds from now on."
            case "take":
                people_group_role_take(group_id=group_id, grant_id=number_of(given, "grant"), **why)
                return "The role is gone from now on."
            case "rename":
                people_group_rename(group_id=group_id, name=given.get("name", "").strip(), **why)
                return "The group has its new name."
            case "delete":
                people_group_delete(group_id=group_id, **why)
                return _DELETED.format(name=name)
            case _:
                raise InputInvalid("There is no such action. Nothing was changed.")


urlpatterns = [
    path("users/groups", PeopleGroupsPage.as_view(), name="people-groups"),
    path("users/groups/<int:group_id>", PeopleGroupPage.as_view(), name="people-group"),
]
