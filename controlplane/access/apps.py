"""Registers the app with Django."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Access."""

    name = "controlplane.access"
    label = "access"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"
