"""Registers the app with Django."""

from django.apps import AppConfig


class ExplainConfig(AppConfig):
    """Registers this folder with Django as the application `explain`."""

    name = "controlplane.explain"
    label = "explain"
    verbose_name = "Explain"
    default_auto_field = "django.db.models.BigAutoField"
