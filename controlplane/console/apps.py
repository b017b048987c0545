"""Registers the app with Django."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Registers this folder with Django as the application `console`."""

    name = "controlplane.console"
    label = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"
