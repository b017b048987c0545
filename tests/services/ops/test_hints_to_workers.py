"""A hint to build, or to look at a rollout, reaches the workers' queue from any process that has the rooms, which know
nothing of Celery.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.valkey import valkey

ROOT = Path(__file__).parents[3]

HINT = """
import django
django.setup()
from controlplane.broker import hints
hints._deliver(("{kind}", 7))
"""


@pytest.mark.parametrize(
    ("kind", "task"),
    [("build", "controlplane.builder.tasks.build"), ("rollout", "controlplane.rollouts.tasks.advance")],
)
def test_hint__of_a_process_with_the_settings_of_web__is_a_task_in_the_workers_queue(kind: str, task: str) -> None:
    with valkey() as broker:
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings", "REDIS_URL": broker.url}

        subprocess.run([sys.executable, "-c", HINT.format(kind=kind)], cwd=ROOT, env=environment, check=True)

        (message,) = cast(list[Any], broker.client().lrange("celery", 0, -1))
        assert json.loads(message)["headers"]["task"] == task
        assert json.loads(message)["headers"]["argsrepr"] == "[7]"
