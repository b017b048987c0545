"""Registers the app with Django."""

from django.apps import AppConfig


class ClientsConfig(AppConfig):
    """Clients."""

    name = "controlplane.clients"
    label = "clients"
    verbose_name = "Clients"
    default_auto_field = "django.db.models.BigAutoField"
