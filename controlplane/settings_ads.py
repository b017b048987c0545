"""The slim settings of the ADS process: no DRF, no Celery, no web (decisions D5a)."""

from controlplane.database.aliases import databases
from controlplane.settings_base import *  # noqa: F403  a settings module is a namespace
from controlplane.settings_base import PARLEY, ROOMS_OF_ADS

INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", *ROOMS_OF_ADS]
DATABASES = databases(PARLEY, pooled=False)  # few threads, which live as long as the process
