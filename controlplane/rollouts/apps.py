"""Registers the app with Django."""

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    """Registers this folder with Django as the application `rollouts`."""

    name = "controlplane.rollouts"
    label = "rollouts"
    verbose_name = "Rollouts"
    default_auto_field = "django.db.models.BigAutoField"
