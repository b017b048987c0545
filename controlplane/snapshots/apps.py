"""Registers the app with Django."""

from django.apps import AppConfig


class SnapshotsConfig(AppConfig):
    """Registers this folder with Django as the application `snapshots`."""

    name = "controlplane.snapshots"
    label = "snapshots"
    verbose_name = "Snapshots"
    default_auto_field = "django.db.models.BigAutoField"
