"""Builders of facts for the judge, with defaults."""

from collections.abc import Mapping

from controlplane.rollouts.facts import Answer, Asked, Facts, Others, Rules
from controlplane.rollouts.values import Key

PAY: Key = ("cluster", "pay")
SHOP: Key = ("cluster", "shop")
ENVOY, GO = "envoy 1.40", "grpc-go 1.66"
PILOT = Rules(pilot=True)
STEPS = Rules(pilot=False)

TAKEN, REFUSED, UNSURE, SENT, UNSENT = Answer.TAKEN, Answer.REFUSED, Answer.UNSURE, Answer.SENT, Answer.UNSENT


def client(
    name: str,
    answer: Answer | Mapping[Key, Answer] | None = TAKEN,
    *,
    kind: str = ENVOY,
    identity: str = "",
    asked_s: float | None = 1.0,
    connected: bool = True,
    losses: int = 0,
) -> Asked:
    """A client of the cohort; one answer is about `pay`, and None says that it asks for nothing that differs."""
    answers = {PAY: answer} if isinstance(answer, Answer) else answer or {}
    return Asked(name, kind, identity, answers, asked_s, connected, losses)


def facts(
    *cohort: Asked, others: int = 0, served_s: float | None = 1.0, identities: tuple[str, ...] = (), **more: object
) -> Facts:
    """The facts of a step about `pay`, and how many other clients of each kind ask for it."""
    names = {key for asked in cohort for key in asked.answers} or {PAY}
    kinds = {asked.kind for asked in cohort}
    spare = (
        {(kind, key): Others(others, frozenset(identities or [""])) for kind in kinds for key in names}
        if others
        else {}
    )
    wanted = {key: sum(key in asked.answers for asked in cohort) + others for key in names}
    return Facts(served_s, frozenset(names), wanted, cohort, spare, **more)  # type: ignore[arg-type]  # as Facts has them
