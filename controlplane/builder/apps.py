"""Registers the app with Django."""

from django.apps import AppConfig


class BuilderConfig(AppConfig):
    """Registers this folder with Django as the application `builder`."""

    name = "controlplane.builder"
    label = "builder"
    verbose_name = "Builder"
    default_auto_field = "django.db.models.BigAutoField"
