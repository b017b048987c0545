"""Registers the app with Django."""

from django.apps import AppConfig


class ListingConfig(AppConfig):
    """Registers this folder with Django as the application `listing`."""

    name = "controlplane.listing"
    label = "listing"
    verbose_name = "Lists"
    default_auto_field = "django.db.models.BigAutoField"
