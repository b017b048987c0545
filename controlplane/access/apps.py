"""Registers the app with Django."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Registers this folder with Django as the application `access`."""

    name = "controlplane.access"
    label = "access"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"
