"""What operators and data planes authenticate with, and the roles of people. People are Django's own users."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone

from controlplane.accounts.principal import Role
from controlplane.accounts.token_rules import TokenKind
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS


class ApiToken(models.Model):
    """A bearer token of the REST API. Only its hash is stored; the plaintext is shown once.

    `owner` is the person it belongs to, who bounds what it may do and with whom it ends; null of a service's. `maker`
    is the token it was made with, with which it ends, too; null where it was made by somebody signed in, or by the
    installation. `created_by` and `creator` are the name and the id (`principal_ids.PrincipalId`) of who made it; empty
    of tokens that are older than them. Names are unique within `name_space` (`token_rules.name_space`), among tokens
    that are not revoked; where that is empty (the installation's), they are not.
    """

    name = models.CharField(max_length=150)
    name_space = models.CharField(max_length=64, blank=True, default="", db_default="")
    kind = models.CharField(
        max_length=16,
        choices=[(kind.value, kind.value) for kind in TokenKind],
        default=TokenKind.SERVICE.value,
        db_default=TokenKind.SERVICE.value,
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True)
    maker = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="made")
    created_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    creator = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, default="", db_default="")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_on = models.DateField(null=True, blank=True)

    class Meta:
        """A person's token has a person; a name says which token, among those of one owner."""

        constraints = (
            models.CheckConstraint(
                condition=models.Q(kind=TokenKind.PERSONAL.value, owner__isnull=False)
                | (~models.Q(kind=TokenKind.PERSONAL.value) & models.Q(owner__isnull=True)),
                name="token_personal_has_owner",
            ),
            models.UniqueConstraint(
                fields=("name_space", "name"),
                condition=models.Q(revoked_at=None) & ~models.Q(name_space=""),
                name="token_name_once",
            ),
        )

    def __str__(self) -> str:
        """The token's name and the part of it that may be shown."""
        return f"{self.name} ({self.prefix}…)"


class ClientToken(models.Model):
    """A bearer token of data planes. Only its hash is stored; the plaintext is shown once.

    `environment` is the only one it is good for; empty: any. Nothing but `revoked_at` ever changes, so that the number
    of tokens that are not revoked and the highest id say whether there is anything new (`client_tokens_version`).
    `created_by` and `creator` are the name and the id (`principal_ids.PrincipalId`) of who made it; it stays when they
    go, for data planes are not theirs.
    """

    subject = models.CharField(max_length=255)
    environment = models.CharField(max_length=63, blank=True, default="")
    hint = models.CharField(max_length=8)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=150)
    creator = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        """The token's subject and the part of it that may be shown."""
        return f"{self.subject} (…{self.hint})"


class RoleGrant(models.Model):
    """A role of a user, or of every user of a group, in one environment; empty: in all of them."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="role_grants"
    )
    group = models.ForeignKey(Group, on_delete=models.CASCADE, null=True, blank=True, related_name="role_grants")
    environment = models.CharField(
        max_length=63, blank=True, default="", help_text="The key of an environment; empty: all environments."
    )
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])

    class Meta:
        """A grant is a user's or a group's, and says each thing once."""

        constraints = (
            models.CheckConstraint(
                condition=models.Q(user__isnull=True, group__isnull=False)
                | models.Q(user__isnull=False, group__isnull=True),
                name="grant_of_user_or_group",
            ),
            models.CheckConstraint(condition=models.Q(role__in=[role.value for role in Role]), name="grant_role_known"),
            models.UniqueConstraint(
                fields=("user", "environment", "role"), condition=models.Q(group=None), name="user_grant_once"
            ),
            models.UniqueConstraint(
                fields=("group", "environment", "role"), condition=models.Q(user=None), name="group_grant_once"
            ),
        )

    def __str__(self) -> str:
        """The user or group, the role, and the environment it holds in."""
        return f"{self.user or self.group}: {self.role} in {self.environment or 'all environments'}"


class LoginAttempt(models.Model):
    """An attempt to sign in during the last minute, under the hash of where it came from or of whom it named."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Attempts are counted by key and deleted by time."""

        indexes = (models.Index(fields=("key", "at")), models.Index(fields=("at",)))

    def __str__(self) -> str:
        """The time of the attempt."""
        return f"{self.at:%H:%M:%S}"
