"""The Celery application: wiring only. Tasks live in the rooms' `tasks` modules and belong to this app.

Imported by the worker (`celery -A controlplane.celery`), by the web process (so that shared tasks find this broker) and
by whatever sends a task. The slim ADS settings never import it (resolutions D5a).
"""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from celery import Celery, bootsteps
from celery.signals import beat_init, setup_logging, worker_ready

from controlplane.starting import cannot_start, config_ready, settings_ready

if TYPE_CHECKING:
    from controlplane.builder.sweeper import Sweeper

READY_FILE_VARIABLE: Final = "PARLEY_READY_FILE"

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

settings_ready()  # Celery would show a traceback

app = Celery("parley")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# What beat asks for; the sweeper does the same from the database, so a beat that is missing or doubled changes nothing.
app.conf.beat_schedule = {
    "digest": {"task": "controlplane.incidents.tasks.digest", "schedule": 1.0, "options": {"expires": 1.0}},
}


class SweeperStep(bootsteps.StartStopStep):
    """Runs the sweeper in the worker's own process, from the moment the pool stands and whether or not a broker
    answers.

    It starts after the pool's processes were forked, so that no child inherits a lock it holds.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: object, **options: object) -> None:
        super().__init__(parent, **options)
        self._sweepers: tuple[Sweeper, ...] = ()

    def start(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        # Not at the top: the rooms' models exist only after Django is set up, which this module is part of.
        from controlplane.builder.services import Upkeep, builds_sweep  # noqa: PLC0415
        from controlplane.builder.sweeper import Sweeper  # noqa: PLC0415
        from controlplane.clients.selectors import sent_before  # noqa: PLC0415
        from controlplane.fitness.watch import PERIOD_S, Watch  # noqa: PLC0415
        from controlplane.home import Home  # noqa: PLC0415
        from controlplane.incidents.services import digest  # noqa: PLC0415
        from controlplane.notify.services import deliveries_send, notifications_make  # noqa: PLC0415
        from controlplane.process import unknown_variables_tell  # noqa: PLC0415

        unknown_variables_tell()
        config = config_ready()
        # On this thread, and then by a sweeper: a process of the pool must not be forked in the middle of a look.
        watch = Watch("worker", on_foreign_keys=_end)
        if foreign := watch.look().foreign_keys:
            cannot_start(foreign)
        # Looked at by the container's health check: it says that sweeping goes on, which needs no broker.
        alive = Home(config.home).run / "worker.alive"
        interval_s = config.limits.reconcile_poll_ms / 1000
        # A target that does not answer must hold up neither builds nor what others are told.
        self._sweepers = (
            Sweeper((alive.touch, builds_sweep, digest, Upkeep(sent_before)), interval_s),
            Sweeper((notifications_make,), interval_s),
            Sweeper((deliveries_send,), interval_s),
            Sweeper((watch.look,), PERIOD_S),
        )
        for sweeper in self._sweepers:
            sweeper.start()

    def stop(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        for sweeper in self._sweepers:
            sweeper.stop()


app.steps["worker"].add(SweeperStep)


def _end() -> None:
    """Somebody else's keys came into force while this process ran, or it started while the database was away."""
    os.kill(os.getpid(), signal.SIGTERM)


@beat_init.connect
def _beat_looks(**_arguments: object) -> None:
    """A beat of its own may have no database: it asks for work and does none."""
    from controlplane.fitness.watch import FIRST_LOOK_S, Watch  # noqa: PLC0415  once Django is set up

    if settings_ready().database is None:
        return
    if foreign := Watch("beat").start(wait_s=FIRST_LOOK_S).foreign_keys:
        cannot_start(foreign)


@setup_logging.connect
def _keep_django_logging(**_arguments: object) -> None:
    """Celery sets up logging of its own unless somebody listens here; Django's LOGGING is in force already."""


@worker_ready.connect
def _say_ready(**_arguments: object) -> None:
    """Tell the supervisor that the worker consumes from the broker now."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if file:
        Path(file).write_text(f"{os.getpid()}\n", encoding="ascii")
