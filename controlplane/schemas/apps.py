"""Registers the app with Django."""

from django.apps import AppConfig


class SchemasConfig(AppConfig):
    """Registers this folder with Django as the application `schemas`."""

    name = "controlplane.schemas"
    label = "schemas"
    verbose_name = "Schemas"
    default_auto_field = "django.db.models.BigAutoField"
