"""Tokens and the audit log."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.accounts.principal import Role
from controlplane.api.fields import StrictSerializer, Text, Time

_ROLES = [role.value for role in Role]
_MAX_SCOPES = 100


class ScopeIn(StrictSerializer):
    """A role in one environment, or in all of them."""

    role = serializers.ChoiceField(choices=_ROLES)
    environment = Text(allow_null=True, max_length=63, help_text="Null: all environments.")


class ScopeOut(serializers.Serializer[Any]):
    """A role in one environment, or in all of them."""

    role = serializers.ChoiceField(choices=_ROLES)
    environment = serializers.CharField(allow_null=True)


class TokenIn(StrictSerializer):
    """A new token."""

    name = Text(max_length=143)  # the audit log's column, less "token:"
    scopes = serializers.ListField(child=ScopeIn(), max_length=_MAX_SCOPES)
    expires_at = Time(required=False, allow_null=True, default=None)

    def validate_scopes(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A token without a scope could do nothing."""
        if not value:
            raise ValidationError("A token needs at least one scope.", code="empty")
        return value


class TokenOut(serializers.Serializer[Any]):
    """A token, without what makes it one."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How it begins, to recognise it by.")
    scopes = ScopeOut(many=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_on = serializers.DateField(allow_null=True)


class TokenMadeOut(TokenOut):
    """A token at the only moment when it is told."""

    token = serializers.CharField(help_text="Shown once; only its hash is stored.")


class AuditEventOut(serializers.Serializer[Any]):
    """Who did what to what, when, by which request."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    verb = serializers.CharField()
    subject = serializers.CharField(allow_blank=True)
    environment = serializers.CharField(allow_null=True)
    request_id = serializers.CharField(allow_blank=True)
    detail = serializers.DictField()
