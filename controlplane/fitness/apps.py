"""Registers the app with Django."""

from django.apps import AppConfig


class FitnessConfig(AppConfig):
    """Registers this folder with Django as the application `fitness`."""

    name = "controlplane.fitness"
    label = "fitness"
    verbose_name = "Fitness"
    default_auto_field = "django.db.models.BigAutoField"
