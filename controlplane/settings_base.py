"""What the settings of every process share. Loads neither DRF nor Celery (decisions D5a)."""

import os
from pathlib import Path

from controlplane.config import home
from controlplane.config.loading import load
from controlplane.logs.setup import configure_events, logging_config

BASE_DIR = Path(__file__).resolve().parent.parent

PARLEY = load(os.environ, directory=Path.cwd())

SECRET_KEY = home.secret_key(PARLEY)
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False  # the texts are English; numbers and times are written for logs and pipelines
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The rooms that ADS reads and writes; the others are in `settings`.
ROOMS_OF_ADS = [
    "controlplane.journal",
    "controlplane.accounts",
    "controlplane.catalog",
    "controlplane.schemas",
    "controlplane.history",
    "controlplane.access",
    "controlplane.snapshots",
    "controlplane.clients",
    "controlplane.fitness",
    "controlplane.ops",
]

configure_events()
LOGGING = logging_config(as_json=PARLEY.log_json)
