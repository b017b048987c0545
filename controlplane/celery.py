"""The Celery application: wiring only. Tasks live in the rooms' `tasks` modules and belong to this app.

Imported by the worker (`celery -A controlplane.celery`), by the web process (so that shared tasks find this broker) and
by whatever sends a task. The slim ADS settings never import it (decisions D5a).
"""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from billiard import current_process
from celery import Celery, bootsteps
from celery.signals import after_task_publish, beat_init, setup_logging, worker_ready

from controlplane.log_capture import capture_begin
from controlplane.starting import cannot_start, config_ready, settings_ready

if TYPE_CHECKING:
    from controlplane.builder.sweeper import Sweeper
    from xdscore.status_http import Readiness

READY_FILE_VARIABLE: Final = "PARLEY_READY_FILE"

capture_begin()
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
    """Runs the sweeper in the worker's own process, and answers probes about it, from the moment the pool stands and
    whether or not a broker answers.

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
        from controlplane.ops.status_thread import status_listen  # noqa: PLC0415
        from controlplane.ops.worker_status import Watched  # noqa: PLC0415
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
        look = Watched(builds_sweep)
        status_listen("worker", config.worker_metrics_address, lambda: watch.state.beside(look.readiness()))
        # A target that does not answer must hold up neither builds nor what others are told.
        self._sweepers = (
            Sweeper((alive.touch, look, digest, Upkeep(sent_before)), interval_s),
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
    """End the process: other keys came into force while it ran, or it started while the database was away."""
    os.kill(os.getpid(), signal.SIGTERM)


@setup_logging.connect
def _keep_django_logging(**_arguments: object) -> None:
    """Keep Django's LOGGING, which is in force already: Celery sets up logging of its own unless somebody listens
    here.
    """


@worker_ready.connect
def _say_ready(**_arguments: object) -> None:
    """Tell the supervisor that the worker consumes from the broker now."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if file:
        Path(file).write_text(f"{os.getpid()}\n", encoding="ascii")


@beat_init.connect
def _beat_begins(**_arguments: object) -> None:
    """Start to check how a beat that is a process of its own fits, and to answer its probes and scrapers; in `manage.py
    up` it is a worker's child. It may have no database: it asks for work and does none.
    """
    if current_process().name != "MainProcess":
        return
    # Not at the top: see above.
    from controlplane.fitness.watch import FIRST_LOOK_S, State, Watch  # noqa: PLC0415
    from controlplane.ops.beat_status import Sending  # noqa: PLC0415
    from controlplane.ops.status_thread import status_listen  # noqa: PLC0415

    config = settings_ready()
    watch = Watch("beat") if config.database is not None else None
    if watch is not None and (foreign := watch.start(wait_s=FIRST_LOOK_S).foreign_keys):
        cannot_start(foreign)

    sending = Sending()
    after_task_publish.connect(sending.sent, weak=False)

    def readiness() -> "Readiness":
        return (watch.state if watch is not None else State()).beside(sending.readiness())

    status_listen("beat", config.beat_metrics_address, readiness)
