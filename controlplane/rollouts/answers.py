"""What a client's holding of a name says of what its side has: the words of truth.md H1 as those of the judge. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.rollouts.facts import Answer
from controlplane.rollouts.values import Key
from xdscore.holdings import Holding, HoldingState
from xdscore.snapshot import Entry, Served


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the candidate side has of a name that differs. `version`: of its content; empty where it has none.
    `deleted`: whether the rollout deletes the name, so that no content is what is meant.
    """

    version: str
    deleted: bool = False


def candidates_of(diff: Mapping[Key, Entry | None], deleted: frozenset[Key]) -> Mapping[Key, Candidate]:
    """What the candidate side has, by name. `diff`: the entries that differ; `deleted`: the names that the rollout
    deletes.
    """
    return {
        key: Candidate(entry.content.version if isinstance(entry, Served) else "", key in deleted)
        for key, entry in diff.items()
    }


def answer_of(holding: Holding | None, candidate: Candidate) -> Answer:
    """What a client said of a name for which it asks, by what it has of it; None: it has nothing."""
    if not candidate.version:
        return _without_content(holding, candidate)
    if holding is None or holding.version != candidate.version:
        return Answer.UNSENT
    match holding.state:
        case HoldingState.ACKED:
            return Answer.TAKEN
        case HoldingState.NACKED:
            return Answer.REFUSED
        case HoldingState.UNKNOWN:
            return Answer.UNSURE
        case _:
            return Answer.SENT


def _without_content(holding: Holding | None, candidate: Candidate) -> Answer:
    if holding is not None and holding.state not in {HoldingState.ERROR_SENT, HoldingState.SILENT}:
        # It goes on with what the stable side has, until it is sent that there is nothing.
        return Answer.UNSENT
    return Answer.TAKEN if candidate.deleted else Answer.ERROR
