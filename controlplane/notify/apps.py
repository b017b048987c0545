"""Registers the app with Django."""

from django.apps import AppConfig


class NotifyConfig(AppConfig):
    """Registers this folder with Django as the application `notify`."""

    name = "controlplane.notify"
    label = "notify"
    verbose_name = "Notifications"
    default_auto_field = "django.db.models.BigAutoField"
