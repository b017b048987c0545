"""The Celery application: wiring only. Tasks live in the rooms' `tasks` modules and belong to this app.

Imported by the worker (`celery -A controlplane.celery`), by the web process (so that shared tasks find this broker) and
by whatever sends a task. The slim ADS settings never import it (resolutions D5a).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from billiard import current_process
from celery import Celery, bootsteps
from celery.signals import after_task_publish, beat_init, setup_logging, worker_ready

from controlplane.log_capture import capture_begin

if TYPE_CHECKING:
    from controlplane.builder.sweeper import Sweeper

READY_FILE_VARIABLE: Final = "PARLEY_READY_FILE"

capture_begin()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

app = Celery("parley")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# What beat asks for; the sweeper does the same from the database, so a beat that is missing or doubled changes nothing.
app.conf.beat_schedule = {
    "digest": {"task": "controlplane.incidents.tasks.digest", "schedule": 1.0, "options": {"expires": 1.0}},
}


class SweeperStep(bootsteps.StartStopStep):
    """Runs the sweeper in the worker's own process, and answers how it goes, from the moment the pool stands and
    whether or not a broker answers.

    It starts after the pool's processes were forked, so that no child inherits a lock it holds.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: object, **options: object) -> None:
        super().__init__(parent, **options)
        self._sweepers: tuple[Sweeper, ...] = ()

    def start(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        # Not at the top: the rooms' models exist only after Django is set up, which this module is part of.
        from django.conf import settings  # noqa: PLC0415

        from controlplane.builder.services import Upkeep, builds_sweep  # noqa: PLC0415
        from controlplane.builder.sweeper import Sweeper  # noqa: PLC0415
        from controlplane.clients.selectors import sent_before  # noqa: PLC0415
        from controlplane.home import home_create  # noqa: PLC0415
        from controlplane.incidents.services import digest  # noqa: PLC0415
        from controlplane.notify.services import deliveries_send, notifications_make  # noqa: PLC0415
        from controlplane.ops.status_thread import status_listen  # noqa: PLC0415
        from controlplane.ops.worker_status import Watched  # noqa: PLC0415
        from controlplane.process import unknown_variables_tell  # noqa: PLC0415

        unknown_variables_tell()
        # Looked at by the container's health check: it says that sweeping goes on, which needs no broker.
        alive = home_create(settings.PARLEY).run / "worker.alive"
        interval_s = settings.PARLEY.limits.reconcile_poll_ms / 1000
        look = Watched(builds_sweep)
        status_listen("worker", settings.PARLEY.worker_metrics_address, look.readiness)
        # A target that does not answer must hold up neither builds nor what others are told.
        self._sweepers = (
            Sweeper((alive.touch, look, digest, Upkeep(sent_before)), interval_s),
            Sweeper((notifications_make,), interval_s),
            Sweeper((deliveries_send,), interval_s),
        )
        for sweeper in self._sweepers:
            sweeper.start()

    def stop(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        for sweeper in self._sweepers:
            sweeper.stop()


app.steps["worker"].add(SweeperStep)


@setup_logging.connect
def _keep_django_logging(**_arguments: object) -> None:
    """Celery sets up logging of its own unless somebody listens here; Django's LOGGING is in force already."""


@worker_ready.connect
def _say_ready(**_arguments: object) -> None:
    """Tell the supervisor that the worker consumes from the broker now."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if file:
        Path(file).write_text(f"{os.getpid()}\n", encoding="ascii")


@beat_init.connect
def _tell_of_beat(**_arguments: object) -> None:
    """Answer probes and scrapers for a beat that is a process of its own; in `manage.py up` it is a worker's child."""
    if current_process().name != "MainProcess":
        return
    # Not at the top: see above.
    from django.conf import settings  # noqa: PLC0415

    from controlplane.ops.beat_status import Sending  # noqa: PLC0415
    from controlplane.ops.status_thread import status_listen  # noqa: PLC0415

    sending = Sending()
    after_task_publish.connect(sending.sent, weak=False)
    status_listen("beat", settings.PARLEY.beat_metrics_address, sending.readiness)
