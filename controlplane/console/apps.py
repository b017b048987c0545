"""Registers the app with Django."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Console."""

    name = "controlplane.console"
    label = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"
