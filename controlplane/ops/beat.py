"""What beat does beside sending what is due: it looks at how it fits, and answers probes and scrapers."""

from typing import TYPE_CHECKING

from billiard import current_process
from celery.signals import after_task_publish, beat_init

from controlplane.ops.beat_status import Sending
from controlplane.ops.starting import cannot_start, settings_ready
from controlplane.ops.status_thread import status_listen

if TYPE_CHECKING:
    from xdscore.status_http import Readiness


@beat_init.connect
def _begin(**_arguments: object) -> None:
    """Watch how a beat that is a process of its own fits, and answer its probes; in `manage.py up` it is
    a worker's child. It may have no database: it asks for work and does none.
    """
    if current_process().name != "MainProcess":
        return
    # Not at the top: the rooms' models exist only once Django is set up, which is after Celery imported this.
    from controlplane.fitness.watch import FIRST_LOOK_S, State, Watch  # noqa: PLC0415

    config = settings_ready()
    watch = Watch("beat") if config.database is not None else None
    if watch is not None and (foreign := watch.start(wait_s=FIRST_LOOK_S).foreign_keys):
        cannot_start(foreign)

    sending = Sending()
    after_task_publish.connect(sending.sent, weak=False)

    def readiness() -> "Readiness":
        return (watch.state if watch is not None else State()).beside(sending.readiness())

    status_listen("beat", config.beat_metrics_address, readiness)
