"""Registers the app with Django."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Accounts."""

    name = "controlplane.accounts"
    label = "accounts"
    verbose_name = "Accounts"
    default_auto_field = "django.db.models.BigAutoField"
