"""Registers the app with Django."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Registers this folder with Django as the application `accounts`."""

    name = "controlplane.accounts"
    label = "accounts"
    verbose_name = "Accounts"
    default_auto_field = "django.db.models.BigAutoField"
