"""Registers the app with Django."""

from django.apps import AppConfig


class BuilderConfig(AppConfig):
    """Builder."""

    name = "controlplane.builder"
    label = "builder"
    verbose_name = "Builder"
    default_auto_field = "django.db.models.BigAutoField"
