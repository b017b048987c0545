"""What a worker does beside its tasks: it sweeps, answers how that goes, and says that it is ready."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from celery import bootsteps
from celery.signals import task_prerun, worker_ready

from controlplane.config.home import Home
from controlplane.ops.celery_app import app
from controlplane.ops.process import unknown_variables_tell
from controlplane.ops.starting import cannot_start, config_ready
from controlplane.ops.status_thread import status_listen
from controlplane.ops.worker_status import Watched

if TYPE_CHECKING:
    from controlplane.builder.sweeper import Sweeper
    from controlplane.rollouts.listening import JudgeListener

READY_FILE_VARIABLE: Final = "PARLEY_READY_FILE"


class SweeperStep(bootsteps.StartStopStep):
    """Runs the sweeper in the worker's own process, and answers probes about it, whether or not a broker answers.

    It starts after the processes of the worker's pool were forked, so that none inherits a lock that the sweeper holds.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: object, **options: object) -> None:
        super().__init__(parent, **options)
        self._sweepers: tuple[Sweeper, ...] = ()
        self._listener: JudgeListener | None = None

    def start(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        # Not at the top: the rooms' models exist only once Django is set up, which is after Celery imported this.
        from controlplane.builder.services import Upkeep, builds_sweep  # noqa: PLC0415
        from controlplane.builder.sweeper import Sweeper  # noqa: PLC0415
        from controlplane.changesets.services import change_sets_tick  # noqa: PLC0415
        from controlplane.clients.fleet_states import Sampling  # noqa: PLC0415
        from controlplane.clients.selectors import sent_before  # noqa: PLC0415
        from controlplane.fitness.watch import PERIOD_S, Watch  # noqa: PLC0415
        from controlplane.incidents.services import digest  # noqa: PLC0415
        from controlplane.notify.services import deliveries_send, notifications_make  # noqa: PLC0415
        from controlplane.rollouts.listening import JudgeListener  # noqa: PLC0415
        from controlplane.rollouts.services import rollouts_tick, webhooks_ask  # noqa: PLC0415

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
            Sweeper((alive.touch, look, digest, Sampling(), Upkeep(sent_before)), interval_s),
            # A rollout waits for a quiet moment before it opens, and builds do not wait for that.
            Sweeper((rollouts_tick,), interval_s),
            Sweeper((change_sets_tick,), interval_s),
            Sweeper((webhooks_ask,), interval_s),
            Sweeper((notifications_make,), interval_s),
            Sweeper((deliveries_send,), interval_s),
            Sweeper((watch.look,), PERIOD_S),
        )
        self._listener = JudgeListener()
        for thread in (*self._sweepers, self._listener):
            thread.start()

    def stop(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        for thread in (*self._sweepers, self._listener):
            if thread is not None:
                thread.stop()


app.steps["worker"].add(SweeperStep)


def _end() -> None:
    """End this process. Called when its keys are found not to be those of the installation, at start or while it
    runs.
    """
    os.kill(os.getpid(), signal.SIGTERM)


@task_prerun.connect
def _follow_schema(**_arguments: object) -> None:
    """Let a process of the pool read by the sets of descriptors that the database has, as the others do by `Watch`."""
    from controlplane.fitness.watch import PERIOD_S  # noqa: PLC0415  as above
    from controlplane.schemas.following import schema_follow_at_times  # noqa: PLC0415

    schema_follow_at_times(PERIOD_S)


@worker_ready.connect
def _say_ready(**_arguments: object) -> None:
    """Tell the supervisor that the worker takes tasks from the broker now."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if file:
        Path(file).write_text(f"{os.getpid()}\n", encoding="ascii")
