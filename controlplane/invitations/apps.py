"""Registers the app with Django."""

from django.apps import AppConfig


class InvitationsConfig(AppConfig):
    """Registers this folder with Django as the application `invitations`."""

    name = "controlplane.invitations"
    label = "invitations"
    verbose_name = "Invitations"
    default_auto_field = "django.db.models.BigAutoField"
