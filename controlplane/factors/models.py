"""What people prove themselves by beside their password."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from controlplane.factors.values import MAX_KEY_NAME_CHARS


class AuthenticatorApp(models.Model):
    """An app that shows a new code every 30 s (RFC 6238). A row counts: it is written once a code was right.

    `sealed`: the secret that it shares with Parley, encrypted for this user. `last_step`: the newest time step whose
    code was taken, so that no code is taken twice.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="authenticator_app")
    sealed = models.BinaryField()
    last_step = models.BigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        """The name of the person whose it is."""
        return f"authenticator app of {self.user}"


class SecurityKey(models.Model):
    """A security key or passkey (WebAuthn). `digest`: the hash of its id, by which it is found. `credential`: its id
    and public key, as it gave them. `sign_count`: its own count of uses; 0: it has none.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="security_keys")
    name = models.CharField(max_length=MAX_KEY_NAME_CHARS)
    digest = models.CharField(max_length=64, unique=True)
    credential = models.BinaryField()
    sign_count = models.BigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Constraint: a person's keys have different names."""

        constraints = (models.UniqueConstraint(fields=("user", "name"), name="security_key_name_once"),)

    def __str__(self) -> str:
        """The name and whose it is."""
        return f"{self.name} of {self.user}"


class RecoveryCode(models.Model):
    """A code that stands in for a second factor once. Only its hash is stored, and deleted when it is used."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)

    class Meta:
        """Constraint: a person has no code twice."""

        constraints = (models.UniqueConstraint(fields=("user", "digest"), name="recovery_code_once"),)

    def __str__(self) -> str:
        """The name of the person whose it is."""
        return f"recovery code of {self.user}"
