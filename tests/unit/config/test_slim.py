"""The ADS process loads neither DRF nor Celery (decisions D5a), seen in an interpreter of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

LOOK = """
import sys
import django
django.setup()
import adsserver.main
import adsserver.running.process
import adsserver.store
import controlplane.ops.management.commands.ads
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"rest_framework", "celery", "kombu", "drf_spectacular"}))
"""


def test_ads__everything_it_imports__has_no_drf_and_no_celery() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings_ads"}

    seen = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert (seen.stdout, seen.stderr) == ("[]\n", "")


def test_slim_settings__system_checks__find_nothing() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings_ads"}

    seen = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert seen.returncode == 0, seen.stderr
