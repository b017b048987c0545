"""A hint to build reaches the workers' queue from any process that has the rooms, which know nothing of Celery."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from tests.support.valkey import valkey

ROOT = Path(__file__).parents[3]

HINT = """
import django
django.setup()
from controlplane.broker import hints
hints._deliver(("build", 7))
"""


def test_hint_build__of_a_process_with_the_settings_of_web__is_a_task_in_the_workers_queue() -> None:
    with valkey() as broker:
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings", "REDIS_URL": broker.url}

        subprocess.run([sys.executable, "-c", HINT], cwd=ROOT, env=environment, check=True)

        (message,) = cast(list[Any], broker.client().lrange("celery", 0, -1))
        assert json.loads(message)["headers"]["task"] == "controlplane.builder.tasks.build"
        assert json.loads(message)["headers"]["argsrepr"] == "[7]"
