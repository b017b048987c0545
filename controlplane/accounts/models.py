"""What operators and data planes authenticate with, and the roles of people. People are Django's own users."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone

from controlplane.accounts.browser_words import MAX_CHARS
from controlplane.accounts.principal import Role
from controlplane.accounts.token_rules import TokenKind
from controlplane.common.limits import LIMITED_ROLES, MAX_LIMIT_CHARS
from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.config.oidc import MAX_GROUP_CHARS, MAX_ISSUER_CHARS, MAX_SUBJECT_CHARS


class ApiToken(models.Model):
    """A bearer token of the REST API. Only its hash is stored; the plaintext is shown once.

    `owner`: the person it belongs to. It may do no more than they may, and ends with their account; null: it belongs to
    a service or the installation.
    `maker`: the token with which it was made, and with which it ends; null where a person made it in the console, or
    the installation did.
    `created_by`, `creator`: the name and id (`principal_ids.PrincipalId`) of who made it; empty where it is older than
    these fields.
    `name_space`: names of tokens that are not revoked are unique within it (`token_rules.name_space`); empty for the
    installation's, whose names need not be.
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
        """Constraints: a personal token has an owner, and a name is unique among the tokens in one `name_space` that
        are not revoked.
        """

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
        """The token's name, and its first characters, which tell it from others and are no secret."""
        return f"{self.name} ({self.prefix}…)"


class ClientToken(models.Model):
    """A bearer token of data planes. Only its hash is stored; the plaintext is shown once.

    `environment`: the only one in which it is good; empty: any. `created_by` and `creator`: the name and id
    (`principal_ids.PrincipalId`) of who made it; it outlives their account. Only `revoked_at` ever changes, so that the
    number of tokens that are not revoked and their highest id tell whether anything is new (`client_tokens_version`).
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
        """The identity that the token proves, and the token's first characters, which are no secret."""
        return f"{self.subject} (…{self.hint})"


class RoleGrant(models.Model):
    """A role of one user, or of every user of a group, in one environment; where `environment` is empty, in all of
    them.

    `within`: the resources to which the role is limited (`common.limits.Limit.text`); empty: it has no limit.
    `provider_group`: the group at the identity provider by which a user has the role; it comes and goes with that group
    and counts only while the provider vouches for them (`vouching`). Empty: somebody gave it in Parley.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="role_grants"
    )
    group = models.ForeignKey(Group, on_delete=models.CASCADE, null=True, blank=True, related_name="role_grants")
    environment = models.CharField(
        max_length=63, blank=True, default="", help_text="The key of an environment; empty: all environments."
    )
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    within = models.CharField(max_length=MAX_LIMIT_CHARS, blank=True, default="", db_default="")
    provider_group = models.CharField(max_length=MAX_GROUP_CHARS, blank=True, default="", db_default="")

    class Meta:
        """Constraints: a grant is for a user or for a group, none is stored twice, and only a role that is about single
        resources has a limit.
        """

        constraints = (
            models.CheckConstraint(
                condition=models.Q(user__isnull=True, group__isnull=False)
                | models.Q(user__isnull=False, group__isnull=True),
                name="grant_of_user_or_group",
            ),
            models.CheckConstraint(condition=models.Q(role__in=[role.value for role in Role]), name="grant_role_known"),
            models.CheckConstraint(
                condition=models.Q(within="") | models.Q(role__in=sorted(role.value for role in LIMITED_ROLES)),
                name="grant_role_limited",
            ),
            models.UniqueConstraint(
                fields=("user", "environment", "role", "within", "provider_group"),
                condition=models.Q(group=None),
                name="user_grant_once",
            ),
            models.UniqueConstraint(
                fields=("group", "environment", "role", "within"),
                condition=models.Q(user=None),
                name="group_grant_once",
            ),
        )

    def __str__(self) -> str:
        """The user or group, the role, and the environment."""
        return f"{self.user or self.group}: {self.role} in {self.environment or 'all environments'}"


class Identity(models.Model):
    """Whom an account belongs to at the identity provider. A person is told by issuer and subject together, which never
    change (OpenID Connect Core 1.0 section 5.7), and never by a name or an address.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identity")
    issuer = models.CharField(max_length=MAX_ISSUER_CHARS)
    subject = models.CharField(max_length=MAX_SUBJECT_CHARS)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Constraint: one account for each person."""

        constraints = (models.UniqueConstraint(fields=("issuer", "subject"), name="identity_once"),)

    def __str__(self) -> str:
        """The subject and the issuer."""
        return f"{self.subject} at {self.issuer}"


class ProviderSignIn(models.Model):
    """A session that the identity provider began, while it lasts: what asks the provider again, and when it last
    vouched for the person.

    `key`: stands in the session; 256 random bits. `sealed`: the provider's tokens, encrypted for this key.
    `checked_at`: when the provider was last asked; `verified_at`: when it last vouched.
    """

    key = models.CharField(max_length=43, unique=True)
    identity = models.ForeignKey(Identity, on_delete=models.CASCADE, related_name="sign_ins")
    sealed = models.BinaryField()
    began_at = models.DateTimeField(default=timezone.now)
    checked_at = models.DateTimeField(default=timezone.now)
    verified_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The index finds old ones to delete."""

        indexes = (models.Index(fields=("began_at",)),)

    def __str__(self) -> str:
        """The person, and when they signed in."""
        return f"{self.identity} since {self.began_at:%Y-%m-%d %H:%M:%S}"


class SpentState(models.Model):
    """The `state` of a sign-in that came back from the identity provider, by its hash: it comes back once."""

    digest = models.CharField(max_length=64, unique=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The index finds old ones to delete."""

        indexes = (models.Index(fields=("at",)),)

    def __str__(self) -> str:
        """The time when it came back."""
        return f"{self.at:%H:%M:%S}"


class LoginAttempt(models.Model):
    """A recent attempt to sign in. `key` is a hash of what it is counted by: an address, a browser, or a name."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The indexes count attempts by key, and find old ones to delete."""

        indexes = (models.Index(fields=("key", "at")), models.Index(fields=("at",)))

    def __str__(self) -> str:
        """The time of the attempt."""
        return f"{self.at:%H:%M:%S}"


class SignedInBrowser(models.Model):
    """A browser in which somebody is signed in, as they see it in a list. It opens nothing: the session does, and
    without its session the row counts for nothing.

    `session_key`: the session's, by which it is ended; shown to nobody. `software`: what kind of browser it is, in
    words. `address`: where it was last seen.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="browsers")
    session_key = models.CharField(max_length=40, unique=True)
    began_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)
    address = models.CharField(max_length=45, blank=True, default="")
    software = models.CharField(max_length=MAX_CHARS, blank=True, default="")

    class Meta:
        """The index finds old ones to delete."""

        indexes = (models.Index(fields=("seen_at",)),)

    def __str__(self) -> str:
        """What kind of browser it is, and since when somebody is signed in; never the session's key."""
        return f"{self.software} since {self.began_at:%Y-%m-%d %H:%M:%S}"
