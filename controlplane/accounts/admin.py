"""Users, groups, their roles, and tokens in Django's admin (decisions A9).

Every change is in Parley's audit log, too: which fields, never their values, of which a password would be one.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import models
from django.http import HttpRequest

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.selectors import user_actor
from controlplane.accounts.services import person_tokens_revoke
from controlplane.journal.services import audit_record


class _Audited:
    """Writes an audit entry for each object that is added, changed or deleted in Django's admin pages; Django calls the
    methods within the transaction of the change.
    """

    def log_addition(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        """Record in the audit log that an object was created, then do what Django does."""
        _record(request, "created", obj, message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]  # ModelAdmin's

    def log_change(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        """Record in the audit log that an object was changed, then do what Django does."""
        _record(request, "changed", obj, message)
        return super().log_change(request, obj, message)  # type: ignore[misc]  # ModelAdmin's

    def log_deletions(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        """Record in the audit log that each of these objects was deleted, then do what Django does."""
        for obj in queryset:
            _record(request, "deleted", obj, None)
        return super().log_deletions(request, queryset)  # type: ignore[misc]  # ModelAdmin's


class _RoleGrants(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    model = RoleGrant
    fields = ("role", "environment")
    extra = 0

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[RoleGrant]:
        """The roles that people gave: those by groups of the identity provider are changed there."""
        return super().get_queryset(request).filter(provider_group="")


class PeopleAdmin(_Audited, UserAdmin):  # type: ignore[type-arg]  # as above
    """The admin pages of user accounts, with the roles granted to each."""

    inlines = (_RoleGrants,)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save an account, and revoke its tokens where it is turned off by that, as turning it off on the console's
        page does.
        """
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            _tokens_end(request, [obj])

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Revoke the tokens of an account, so that the audit log tells of each, then delete the account."""
        _tokens_end(request, [obj])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[User]) -> None:
        """Revoke the tokens of these accounts, so that the audit log tells of each, then delete the accounts."""
        _tokens_end(request, queryset)
        super().delete_queryset(request, queryset)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What Django says would be deleted with these accounts, less the complaint that tokens may not be deleted:
        with their owner they are.
        """
        shown, counted, missing, kept = super().get_deleted_objects(objs, request)
        return shown, counted, missing - {ApiToken._meta.verbose_name}, kept  # noqa: SLF001 - Django's documented way


class GroupsAdmin(_Audited, GroupAdmin):
    """The admin pages of groups of people, with the roles granted to each."""

    inlines = (_RoleGrants,)


class _ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Admin pages that only show rows, for tokens: the API and the console make and revoke those."""

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        """Whether a user may add a row in the admin pages. Always False."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002 - as above
        """Whether a user may change a row in the admin pages. Always False."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002 - as above
        """Whether a user may delete a row in the admin pages. Always False."""
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(_ReadOnly):
    """The admin page that lists the tokens of the API."""

    list_display = (
        "name",
        "prefix",
        "kind",
        "owner",
        "created_by",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_on",
    )
    exclude = ("digest",)


@admin.register(ClientToken)
class ClientTokenAdmin(_ReadOnly):
    """The admin page that lists the tokens of data planes."""

    list_display = ("subject", "environment", "hint", "created_by", "created_at", "expires_at", "revoked_at")
    exclude = ("digest",)


admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.register(User, PeopleAdmin)
admin.site.register(Group, GroupsAdmin)


def _tokens_end(request: HttpRequest, people: Iterable[User]) -> None:
    for user in people:
        person_tokens_revoke(user=user, actor=user_actor(request.user))  # type: ignore[arg-type]  # as in `_record`


def _record(request: HttpRequest, done: str, obj: models.Model, message: object) -> None:
    audit_record(
        actor=user_actor(request.user),  # type: ignore[arg-type]  # nobody else gets in here
        verb=f"{obj._meta.model_name}.{done}",  # noqa: SLF001 - Django's documented way
        subject=str(obj),
        detail={} if message is None else {"fields": message},
    )
