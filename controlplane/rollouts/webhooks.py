"""What webhooks are asked about a rollout, and what is made of their answers. Pure: bytes and values in, values out.

An answer is foreign text: bounded, on one line, with everything escaped that acts on a reader. Only JSON in the one
form is an answer; whatever else comes is none, and never a pass (rollouts.md R9).
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from controlplane.clients.foreign_text import one_line
from controlplane.rollouts.values import Counts, Outcome, Phase

MAX_ANSWER_BYTES: Final = 4_096
MAX_REASON_CHARS: Final = 300
# So many resources are named in a question; how many there are is said beside them.
MAX_RESOURCES: Final = 500


@dataclass(frozen=True, slots=True)
class Said:
    """What a webhook said. `outcome`: None where that is no answer, and then `reason` says why."""

    outcome: Outcome | None
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One resource in a question: type, name, the revision that everybody had, that which is on its way (None where
    there is none), and what became of it.
    """

    type: str
    name: str
    from_revision: int | None
    to_revision: int | None
    outcome: str
    change: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent to a webhook. `step`, `steps`: from 1, of how many. `outcome`, `reasons`: the verdict so far.
    `resources`: the first of the rollout's `held`.
    """

    id: str
    rollout: str
    environment: str
    phase: Phase
    step: int
    steps: int
    mode: str
    state: str
    outcome: str
    reasons: Collection[str]
    counts: Counts
    resources: Collection[Asked]
    held: int
    authors: Collection[str]

    def as_json(self) -> Mapping[str, object]:
        """The question as the JSON object that is sent."""
        return {
            "id": self.id,
            "rollout": self.rollout,
            "environment": self.environment,
            "phase": self.phase.value,
            "step": self.step,
            "steps": self.steps,
            "mode": self.mode,
            "state": self.state,
            "verdict": {"outcome": self.outcome or None, "reasons": list(self.reasons)},
            "counts": asdict(self.counts),
            "resources": [
                {
                    "type": each.type,
                    "name": each.name,
                    "from": each.from_revision,
                    "to": each.to_revision,
                    "outcome": each.outcome,
                    "change": each.change,
                }
                for each in self.resources
            ],
            "resources_total": self.held,
            "authors": list(self.authors),
        }


def said_of(status: int, body: bytes, *, whole: bool) -> Said:
    """What an HTTP answer says. `whole`: whether `body` is all of it."""
    if not 200 <= status < 300:
        moved = ", and redirects are not followed" if 300 <= status < 400 else ""
        return Said(None, f"it answered with status {status}{moved}")
    if not whole:
        return Said(None, f"its answer did not end, or has more than {MAX_ANSWER_BYTES:,} bytes")
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        read = None
    verdict = read.get("verdict") if isinstance(read, dict) else None
    if not isinstance(verdict, str) or verdict not in set(Outcome):
        return Said(None, 'it answered something else than {"verdict": "pass", "fail" or "inconclusive"}')
    reason = read.get("reason")
    return Said(Outcome(verdict), foreign(reason) if isinstance(reason, str) else "")


def foreign(text: str) -> str:
    """A text of somebody outside as it is kept."""
    return one_line(" ".join(text[: 4 * MAX_REASON_CHARS].split()), max_chars=MAX_REASON_CHARS)
