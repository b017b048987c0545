"""Registers the app with Django."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Registers this folder with Django as the application `api`."""

    name = "controlplane.api"
    label = "api"
    verbose_name = "API"
    default_auto_field = "django.db.models.BigAutoField"
