"""Registers the app with Django."""

from django.apps import AppConfig


class JournalConfig(AppConfig):
    """Registers this folder with Django as the application `journal`."""

    name = "controlplane.journal"
    label = "journal"
    verbose_name = "Journal"
    default_auto_field = "django.db.models.BigAutoField"
