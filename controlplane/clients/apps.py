"""Registers the app with Django."""

from django.apps import AppConfig


class ClientsConfig(AppConfig):
    """Registers this folder with Django as the application `clients`."""

    name = "controlplane.clients"
    label = "clients"
    verbose_name = "Clients"
    default_auto_field = "django.db.models.BigAutoField"
