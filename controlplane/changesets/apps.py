"""Registers the app with Django."""

from django.apps import AppConfig


class ChangeSetsConfig(AppConfig):
    """Registers this folder with Django as the application `changesets`."""

    name = "controlplane.changesets"
    label = "changesets"
    verbose_name = "Change sets"
    default_auto_field = "django.db.models.BigAutoField"
