"""Asks webhooks about rollouts (rollouts.md "Gates"), outside of any transaction, claim or lock.

Each question has a thread of its own while it is under way, which touches no database: however slow one receiver is, no
other waits for it, and no rollout waits to go back. A try is written down before it is made, by compare-and-set, so
that one process makes it; who was killed meanwhile leaves it to any other once its time is over. The first answer
decides.
"""

import http.client
import json
import threading
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Final

import structlog
from django.conf import settings
from django.db.models import Q, QuerySet

from controlplane.broker.hints import hint_rollout
from controlplane.builder.sweeper import fork_waits
from controlplane.clients.clock import database_now
from controlplane.database.failpoints import failpoint
from controlplane.outside.posting import post, signed
from controlplane.outside.reaching import Deadline
from controlplane.outside.targets import TargetRefusedError
from controlplane.rollouts.models import Rollout, RolloutQuestion, RolloutResource
from controlplane.rollouts.services.signing import webhook_secret
from controlplane.rollouts.stored import counts_of
from controlplane.rollouts.values import OPEN_STATES, Outcome, Phase, RolloutState
from controlplane.rollouts.webhooks import MAX_ANSWER_BYTES, MAX_RESOURCES, Asked, Question, Said, foreign, said_of

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 3
# After the n-th try that had no answer.
_BACK_OFF: Final = (timedelta(seconds=1), timedelta(seconds=3))
# A try ends at its deadline; what it has learnt is written down by then.
_LEASE: Final = timedelta(seconds=5)
# How soon a new question is noticed while an answer is waited for.
_LOOK_S: Final = 0.5
_MAX_UNDER_WAY: Final = 64
_ASKED: Final = [state.value for state in OPEN_STATES if state is not RolloutState.PAUSED]


@dataclass(frozen=True, slots=True)
class _Try:
    """One try: the question's row id and environment, what is sent and where, and for how long."""

    question: int
    number: int
    environment_id: int
    url: str
    body: bytes
    delivery: str
    secret: bytes
    at: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Came:
    """What came of a try. `again`: whether another one may have more success."""

    tried: _Try
    said: Said
    again: bool


def webhooks_ask() -> int:
    """Ask every webhook that is to be asked, or becomes so meanwhile, and keep what they say. Returns how many tries
    were made, when nothing is due or under way any more; earlier, when this process wants to fork, once nothing is
    under way.
    """
    return _Round().run()


class _Round:
    """The tries that are under way at the moment."""

    def __init__(self) -> None:
        self._under_way = 0
        self._came: SimpleQueue[_Came] = SimpleQueue()

    def run(self) -> int:
        tried = 0
        try:
            while True:
                if not fork_waits():
                    tried += self._start()
                if not self._under_way:
                    return tried
                self._settle()
        finally:
            while self._under_way:
                try:
                    self._settle()
                except Exception:
                    log.exception("webhook.lost")

    def _start(self) -> int:
        started = 0
        for question in _due()[: _MAX_UNDER_WAY - self._under_way]:
            found = _begun(question)
            if found is None:
                continue
            threading.Thread(target=self._try, args=(found,), daemon=True).start()
            self._under_way += 1
            started += 1
        return started

    def _try(self, tried: _Try) -> None:
        """Make one try and hand on what came of it. Runs in a thread of its own, which ends at the try's deadline."""
        try:
            said, again = _asked(tried)
        except Exception:
            log.exception("webhook.failed", url=tried.url.partition("?")[0])
            said, again = Said(None, "it could not be asked; the log of the worker says why"), True
        self._came.put(_Came(tried, said, again))

    def _settle(self) -> None:
        """Wait a short time for a try to end, and keep what came of it."""
        try:
            came = self._came.get(timeout=_LOOK_S)
        except Empty:
            return
        self._under_way -= 1
        failpoint("webhook.answered")
        _keep(came)


def _due() -> QuerySet[RolloutQuestion]:
    """What may be asked now, longest due first. Of a paused rollout nobody is asked; when it goes on, all are anew."""
    wanted = Q(phase=Phase.END.value) | Q(rollout__state__in=_ASKED)
    rows = RolloutQuestion.objects.filter(wanted, outcome="", due_at__lte=database_now())
    return rows.select_related("rollout__environment").order_by("due_at", "pk")


def _begun(question: RolloutQuestion) -> _Try | None:
    """Take the next try of a question for this process; None where another process did, and where it is too late for
    one, which decides the question.
    """
    now = database_now()
    row = question.rollout
    left_s = (question.until - now).total_seconds()
    if left_s <= 0 or question.tries >= MAX_TRIES:
        _decide(question.pk, row.environment_id, Outcome.INCONCLUSIVE, _unanswered(question))
        return None
    seconds = min(settings.PARLEY.limits.delivery_timeout_ms / 1_000, left_s)
    taken = RolloutQuestion.objects.filter(pk=question.pk, outcome="", tries=question.tries).update(
        tries=question.tries + 1, due_at=now + timedelta(seconds=seconds) + _LEASE
    )
    if not taken:
        return None
    return _Try(
        question.pk,
        question.tries + 1,
        row.environment_id,
        question.url,
        json.dumps(_question(question, row).as_json()).encode(),
        str(question.public_id),
        webhook_secret(row.environment_id),
        int(now.timestamp()),
        seconds,
    )


def _unanswered(question: RolloutQuestion) -> str:
    return question.reason or "it did not answer in time"


def _question(question: RolloutQuestion, row: Rollout) -> Question:
    resources = RolloutResource.objects.filter(rollout=row).order_by("type", "name")
    return Question(
        id=str(question.public_id),
        rollout=str(row.public_id),
        environment=row.environment.key,
        phase=Phase(question.phase),
        step=row.step + 1,
        steps=len(row.steps),
        mode=row.mode,
        state=row.state,
        outcome=row.outcome,
        reasons=row.reasons,
        counts=counts_of(row.counts),
        resources=[
            Asked(each.type, each.name, each.from_revision, each.to_revision, each.outcome, each.change)
            for each in resources[:MAX_RESOURCES]
        ],
        held=resources.count(),
        authors=row.authors,
    )


def _asked(tried: _Try) -> tuple[Said, bool]:
    """Ask, and return what was said and whether asking again may have more success."""
    deadline = Deadline(tried.seconds)
    headers = signed(tried.secret, tried.at, tried.body, delivery=tried.delivery)
    try:
        answered = post(tried.url, tried.body, headers, deadline, at_most_bytes=MAX_ANSWER_BYTES)
    except TargetRefusedError as error:
        return Said(None, foreign(str(error))), False
    except (OSError, http.client.HTTPException, ValueError) as error:
        # Libraries have many words for a connection that is not waited for any longer.
        if deadline.passed:
            return Said(None, f"it did not answer within {tried.seconds:g} s"), True
        return Said(None, foreign(f"it could not be asked: {type(error).__name__}: {error}")), True
    return said_of(answered.status, answered.body, whole=answered.whole), True


def _keep(came: _Came) -> None:
    tried, said = came.tried, came.said
    log.info("webhook.asked", attempt=tried.number, outcome=said.outcome and said.outcome.value, reason=said.reason)
    if said.outcome is not None or not came.again or tried.number >= MAX_TRIES:
        _decide(tried.question, tried.environment_id, said.outcome or Outcome.INCONCLUSIVE, said.reason)
        return
    RolloutQuestion.objects.filter(pk=tried.question, outcome="", tries=tried.number).update(
        due_at=database_now() + _BACK_OFF[tried.number - 1], reason=said.reason
    )


def _decide(question: int, environment_id: int, outcome: Outcome, reason: str) -> None:
    """Keep the answer to a question, unless it has one or is asked no more; the first one counts."""
    if RolloutQuestion.objects.filter(pk=question, outcome="").update(outcome=outcome.value, reason=reason):
        hint_rollout(environment_id)
