"""Invitations as they are stored: what whoever has the link becomes, and what has become of the link."""

from django.db import models
from django.utils import timezone

from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS


class Invitation(models.Model):
    """An invitation by link. Only the hash of the link's token is stored.

    `username`: the name that the new account gets; empty: whoever comes chooses one.
    `address`: the mail address to which the link was to be sent; empty: it was handed on otherwise.
    `roles`: what is given, as a list of role, key of the environment (empty: all) and id of the environment (null:
    all), by which a later environment with the same key is told apart.
    `created_by`, `creator`: name and id (`principal_ids.PrincipalId`) of who invites: what they may when the invitation
    is accepted is what counts.
    `days`: how long a link lasts, also one that is sent anew.
    `accepted_by`: the name of the account that came of it.
    """

    username = models.CharField(max_length=150, blank=True, default="")
    address = models.CharField(max_length=254, blank=True, default="")
    roles = models.JSONField(default=list)
    reason = models.CharField(max_length=400)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=150)
    creator = models.CharField(max_length=MAX_PRINCIPAL_CHARS)
    created_at = models.DateTimeField(default=timezone.now)
    days = models.PositiveSmallIntegerField()
    expires_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.CharField(max_length=150, blank=True, default="")

    def __str__(self) -> str:
        """The user name or mail address of whom the invitation is for; never its link."""
        return self.username or self.address
