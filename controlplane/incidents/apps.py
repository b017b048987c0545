"""Registers the app with Django."""

from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """Registers this folder with Django as the application `incidents`."""

    name = "controlplane.incidents"
    label = "incidents"
    verbose_name = "Incidents"
    default_auto_field = "django.db.models.BigAutoField"
