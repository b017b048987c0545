"""Registers the app with Django."""

from django.apps import AppConfig


class FactorsConfig(AppConfig):
    """Registers this folder with Django as the application `factors`."""

    name = "controlplane.factors"
    label = "factors"
    verbose_name = "Second factors"
    default_auto_field = "django.db.models.BigAutoField"
