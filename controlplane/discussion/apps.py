"""Registers the app with Django."""

from django.apps import AppConfig


class DiscussionConfig(AppConfig):
    """Registers this folder with Django as the application `discussion`."""

    name = "controlplane.discussion"
    label = "discussion"
    verbose_name = "Discussion"
    default_auto_field = "django.db.models.BigAutoField"
