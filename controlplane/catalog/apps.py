"""Registers the app with Django."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    """Registers this folder with Django as the application `catalog`."""

    name = "controlplane.catalog"
    label = "catalog"
    verbose_name = "Catalogue"
    default_auto_field = "django.db.models.BigAutoField"
