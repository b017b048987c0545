"""What `celery --app controlplane.celery` loads: the application of worker and beat, put together by `ops`."""

# ruff: noqa: E402  what the imports print, and why they fail, is to be a line of the log

import os

from controlplane.logs.capture import capture_begin

capture_begin()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

from controlplane.ops import beat, worker
from controlplane.ops.celery_app import app

__all__ = ["app", "beat", "worker"]
