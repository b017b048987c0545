"""The Celery application of every process that sends tasks or does them. Tasks live in the rooms' `tasks` modules and
belong to this app.

`worker` and `beat` add what those two do beside it. ADS never imports it (decisions D5a).
"""

from typing import Final

from celery import Celery
from celery.signals import setup_logging

from controlplane.ops.starting import settings_ready

BUILD_TASK: Final = "controlplane.builder.tasks.build"
ROLLOUT_TASK: Final = "controlplane.rollouts.tasks.advance"

settings_ready()  # Celery would show a traceback

app = Celery("parley")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# What beat asks for; the sweeper does the same from the database, so a beat that is missing or doubled changes nothing.
app.conf.beat_schedule = {
    "digest": {"task": "controlplane.incidents.tasks.digest", "schedule": 1.0, "options": {"expires": 1.0}},
}


def build_ask(environment_id: int) -> None:
    """Ask the workers, over the broker, to build this environment. Tried once; raises what the broker's client
    raises.
    """
    app.send_task(BUILD_TASK, args=[environment_id], retry=False)


def rollout_ask(environment_id: int) -> None:
    """Ask the workers, over the broker, to look at the rollout of this environment. Tried once; raises what the
    broker's client raises.
    """
    app.send_task(ROLLOUT_TASK, args=[environment_id], retry=False)


@setup_logging.connect
def _keep_django_logging(**_arguments: object) -> None:
    """Do nothing. Celery sets up logging of its own unless this signal has a receiver, and Django's LOGGING is to
    stay.
    """
