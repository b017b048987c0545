"""Tokens and the audit log."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.accounts.principal import Role
from controlplane.accounts.token_rules import (
    MAX_SCOPES,
    MAX_TOKEN_NAME_CHARS,
    TokenKind,
    subject_problem,
    token_name_problem,
)
from controlplane.api.fields import StrictSerializer, Text, Time
from controlplane.common.limits import MAX_LIMIT_NAMES, MAX_OWNER_CHARS, limit_of, limit_problem
from xdscore.names import MAX_NAME_BYTES
from xdscore.resource_types import by_word

_ROLES = [role.value for role in Role]
_TYPES = sorted(by_word)
_OWNER_HELP = "Only resources of this owner."
_TYPES_HELP = "Only resources of these types."
_NAMES_HELP = "Only resources with these names; one star stands for any run of characters, as in `pay*`."
_PRINCIPAL = "Who it was, for good: `user:12`, `token:34`, `installation` or `system`."


class ScopeIn(StrictSerializer):
    """A role in one environment, or in all of them; viewer and editor also on resources of an owner, of types, with
    names only: all that is given must hold.
    """

    role = serializers.ChoiceField(choices=_ROLES)
    environment = Text(allow_null=True, max_length=63, help_text="Null: all environments.")
    owner = Text(required=False, max_length=MAX_OWNER_CHARS, help_text=_OWNER_HELP)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=_TYPES), required=False, max_length=len(_TYPES), help_text=_TYPES_HELP
    )
    names = serializers.ListField(
        child=Text(max_length=MAX_NAME_BYTES), required=False, max_length=MAX_LIMIT_NAMES, help_text=_NAMES_HELP
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The scope with its `limit`. Raises ValidationError where nothing could be within it, or where the role has no
        limit.
        """
        try:
            limit = limit_of(owner=attrs.get("owner"), types=attrs.get("types"), names=attrs.get("names"))
        except ValueError as error:
            raise ValidationError(str(error)) from None
        if problem := limit_problem(Role(attrs["role"]), limit):
            raise ValidationError(problem)
        return {"role": attrs["role"], "environment": attrs["environment"], "limit": limit}


class LimitOut(serializers.Serializer[Any]):
    """Resources of an owner, of types, with names: all that is given holds."""

    owner = serializers.CharField(required=False, help_text=_OWNER_HELP)
    types = serializers.ListField(child=serializers.ChoiceField(choices=_TYPES), required=False, help_text=_TYPES_HELP)
    names = serializers.ListField(child=serializers.CharField(), required=False, help_text=_NAMES_HELP)


class ScopeOut(LimitOut):
    """A role in one environment, or in all of them; with any part of a limit, only on the resources within it."""

    role = serializers.ChoiceField(choices=_ROLES)
    environment = serializers.CharField(allow_null=True)


class RightOut(serializers.Serializer[Any]):
    """A role that somebody has in one environment, or in all of them."""

    role = serializers.ChoiceField(choices=_ROLES)
    environment = serializers.CharField(allow_null=True)
    limits = LimitOut(
        many=True,
        help_text="Only on the resources within all of these; empty: as a whole. A personal token has its own limit "
        "and that of its person.",
    )


class WhoamiOut(serializers.Serializer[Any]):
    """Who asks, and what they may at this moment."""

    name = serializers.CharField()
    id = serializers.CharField(help_text=_PRINCIPAL)
    scopes = RightOut(many=True)


class TokenIn(StrictSerializer):
    """A token of the API to create."""

    name = Text(max_length=MAX_TOKEN_NAME_CHARS)
    scopes = serializers.ListField(child=ScopeIn(), max_length=MAX_SCOPES)
    kind = serializers.ChoiceField(
        choices=[TokenKind.PERSONAL.value, TokenKind.SERVICE.value],
        required=False,
        help_text=(
            "`personal`: yours; it never may more than you may at that moment, and ends with your account. `service`: "
            "nobody's; it stays when you go. By default personal where a person asks, else service."
        ),
    )
    expires_at = Time(
        required=False,
        allow_null=True,
        default=None,
        help_text="Made with a token that ends: no later than that one, which is also what null means then.",
    )

    def validate_name(self, value: str) -> str:
        """The token's name. Raises ValidationError for one that no token can have."""
        if problem := token_name_problem(value):
            raise ValidationError(problem)
        return value

    def validate_scopes(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The token's scopes. Raises ValidationError where there are none: the token could do nothing."""
        if not value:
            raise ValidationError("A token needs at least one scope.", code="empty")
        return value


class TokenOut(serializers.Serializer[Any]):
    """A token of the API without its plaintext."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How it begins, to recognise it by.")
    kind = serializers.ChoiceField(choices=[each.value for each in TokenKind])
    owner = serializers.CharField(allow_null=True, help_text="The person it belongs to; null: it is a service's.")
    owner_id = serializers.CharField(allow_null=True, help_text="The same, for good: `user:` and a number.")
    scopes = ScopeOut(many=True)
    created_by = serializers.CharField(allow_null=True, help_text="Null: made before this was kept.")
    created_by_id = serializers.CharField(allow_null=True, help_text=f"{_PRINCIPAL} Null: as of `created_by`.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_on = serializers.DateField(allow_null=True)


class TokenMadeOut(TokenOut):
    """A new token with its plaintext, which is told only now."""

    token = serializers.CharField(help_text="Shown once; only its hash is stored.")


class SubjectField(Text):
    """A field for the identity that a data plane's token proves (its subject)."""

    def to_internal_value(self, data: object) -> str:
        """The identity. Raises ValidationError for one that no token can prove."""
        subject = super().to_internal_value(data)
        if problem := subject_problem(subject):
            raise ValidationError(problem)
        return subject


class ClientTokenIn(StrictSerializer):
    """A token of data planes to create."""

    subject = SubjectField(help_text="The identity of whoever has the token: what selectors and client groups match.")
    environment = Text(allow_null=True, max_length=63, help_text="The only one it is good for; null: any.")
    expires_at = Time(required=False, allow_null=True, default=None)


class ClientTokenOut(serializers.Serializer[Any]):
    """A token of data planes without its plaintext."""

    id = serializers.IntegerField()
    subject = serializers.CharField()
    environment = serializers.CharField(allow_null=True)
    hint = serializers.CharField(help_text="How it ends, to recognise it by.")
    usable = serializers.BooleanField(
        help_text="It has not ended, and the selectors lead its subject to the environment it is good for."
    )
    created_by = serializers.CharField()
    created_by_id = serializers.CharField(allow_null=True, help_text=f"{_PRINCIPAL} Null: made before ids were kept.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class ClientTokenMadeOut(ClientTokenOut):
    """A new token of data planes with its plaintext, which is told only now."""

    token = serializers.CharField(help_text="Shown once; only its hash is stored.")
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What ADS will ask for beside the token, in sentences."
    )


class AuditEventOut(serializers.Serializer[Any]):
    """An entry of the audit log: who did what to what, when, and by which request."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField(help_text="What they were called then.")
    actor_id = serializers.CharField(allow_null=True, help_text=f"{_PRINCIPAL} Null: not known, or older than ids.")
    verb = serializers.CharField()
    subject = serializers.CharField(allow_blank=True)
    environment = serializers.CharField(allow_null=True)
    request_id = serializers.CharField(allow_blank=True)
    detail = serializers.DictField()
