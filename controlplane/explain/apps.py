"""Registers the app with Django."""

from django.apps import AppConfig


class ExplainConfig(AppConfig):
    """Explain."""

    name = "controlplane.explain"
    label = "explain"
    verbose_name = "Explain"
    default_auto_field = "django.db.models.BigAutoField"
