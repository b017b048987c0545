"""Registers the app with Django."""

from django.apps import AppConfig


class HistoryConfig(AppConfig):
    """Registers this folder with Django as the application `history`."""

    name = "controlplane.history"
    label = "history"
    verbose_name = "History"
    default_auto_field = "django.db.models.BigAutoField"
