"""Every process looks at its own fitness from its start to its end, and leaves what it finds for others to show."""

import os
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import structlog
from django.db import DatabaseError, connection

from controlplane.catalog.key_marks import KeysForeign, keys_permit
from controlplane.clients.clock import database_now
from controlplane.fitness.judging import Check, Finding
from controlplane.fitness.look import wrong_here
from controlplane.fitness.models import ProcessState
from xdscore.status_http import Readiness

log = structlog.get_logger(__name__)

PERIOD_S: Final = 10.0
FIRST_LOOK_S: Final = 3.0  # for which a start waits; a database that is away longer is judged once it is there
_UNANSWERED_S: Final = 1.0  # until the database answered for the first time
GONE_AFTER: Final = timedelta(seconds=4 * PERIOD_S)
_FORGET_AFTER: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class State:
    """The result of the latest check; `looked`: whether the database has answered one."""

    looked: bool = False
    wrong: tuple[Finding, ...] = ()

    @property
    def foreign_keys(self) -> str:
        """Why this process must neither seal nor sign, and had better not run; empty when it may."""
        return next((each.text for each in self.wrong if each.check is Check.KEYS and each.stops), "")

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the process is not ready, as sentences."""
        return tuple(each.text for each in self.wrong if each.stops)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings that do not keep the process from its work, as sentences."""
        return tuple(each.text for each in self.wrong if not each.stops)

    def beside(self, readiness: Readiness) -> Readiness:
        """The readiness that a process reports of its work, with the findings about the process added."""
        return replace(
            readiness,
            reasons=(*self.reasons, *readiness.reasons),
            warnings=(*self.warnings, *readiness.warnings),
        )


class Watch:
    """Checks regularly whether this process fits the installation. `on_foreign_keys` is called after each check that
    finds the process's encryption keys to be those of another installation; any thread may read the state.

    While the database is away the latest state stays, and a process that starts then is judged once it answers.
    """

    def __init__(self, role: str, *, on_foreign_keys: Callable[[], None] = lambda: None) -> None:
        self._role = role
        self._on_foreign_keys = on_foreign_keys
        self._id = uuid.uuid4().hex
        self._state = State()
        self._looked = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fitness", daemon=True)

    @property
    def state(self) -> State:
        """The result of the latest check."""
        return self._state

    def start(self, *, wait_s: float) -> State:
        """Check from now on, in a thread; the first state, or after `wait_s` seconds that nothing is known yet."""
        self._thread.start()
        self._looked.wait(wait_s)
        return self._state

    def stop(self) -> None:
        """End the thread and delete the process's row, if the database lets us soon."""
        self._stopping.set()

    def look(self) -> State:
        """Check once, on this thread; the state after it."""
        try:
            wrong = wrong_here()
            if not any(each.stops for each in wrong):
                keys_permit()
            self._tell(wrong)
        except (DatabaseError, KeysForeign) as error:
            # Who needs the database says that it is away; tables of another version are the next look's finding.
            log.debug("fitness.unknown", reason=str(error))
        finally:
            connection.close()
            self._looked.set()
        if self._state.foreign_keys:
            self._on_foreign_keys()
        return self._state

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.look()
            self._stopping.wait(PERIOD_S if self._state.looked else _UNANSWERED_S)
        try:
            ProcessState.objects.filter(pk=self._id).delete()
        except DatabaseError:
            log.debug("fitness.not_taken_away")
        finally:
            connection.close()

    def _tell(self, wrong: tuple[Finding, ...]) -> None:
        for each in set(wrong) - set(self._state.wrong):
            log.warning("fitness.wrong", check=each.check.value, stops=each.stops, detail=each.text)
        if self._state.wrong and not wrong:
            log.info("fitness.well")
        self._state = State(looked=True, wrong=wrong)
        if any(each.check is Check.SCHEMA and each.stops for each in wrong):
            return  # its row has no table yet, or another one
        now = database_now()
        ProcessState.objects.filter(seen_at__lt=now - _FORGET_AFTER).delete()
        ProcessState.objects.update_or_create(
            pk=self._id,
            defaults={
                "role": self._role,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "seen_at": now,
                "wrong": [[each.check.value, each.text, each.stops] for each in wrong],
            },
        )
