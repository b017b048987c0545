"""The rung of the open rollout: on which side of it the client is and why, and what each side has of the name
(rollouts.md R4, R14). Pure.

It stands behind the others and decides nothing: which side a client is on is part of the decision already.
"""

from controlplane.catalog.choices import StagedState
from controlplane.explain.values import NameFacts, OnSide, Rung, RungState, Staged

ROLLOUT = 9


def rollout_rung(name: NameFacts, side: OnSide | None, *, named: bool) -> Rung | None:
    """The rung of a rollout or a rehearsal; None where none is open and nothing of the name is staged. `side`: on which
    side of the open rollout the client is, None where no rollout is open or no client is known; `named`: a client was
    named.
    """
    staged = name.staged
    if name.rehearsal:
        what = _what(staged) if staged is not None else ""
        return Rung(ROLLOUT, "rollout", RungState.OK, f"{_rehearsed(name)} {what}".rstrip())
    if side is None and staged is None and not name.rollout:
        return None
    where = _where(side, name.rollout, named=named)
    what = _what(staged) if staged is not None else "The name is the same on both sides." if name.rollout else ""
    return Rung(ROLLOUT, "rollout", RungState.OK, " ".join(each for each in (where, what) if each))


def _rehearsed(name: NameFacts) -> str:
    rehearsal = f"rehearsal {name.rehearsal[:8]}"
    if name.rehearses:
        return f"It is one of the clients of {rehearsal}: for a moment it gets what is rehearsed."
    return f"The open {rehearsal} changes nothing for it: only the clients that rehearse get something else meanwhile."


def _where(side: OnSide | None, rollout: str, *, named: bool) -> str:
    if side is None:
        if not rollout:
            return ""
        whom = "Its streams are not open" if named else "No client was named: the answer is for the stable side"
        return f"Rollout {rollout[:8]} is open. {whom}."
    which = "candidate" if side.candidate else "stable"
    return f"It is on the {which} side of rollout {side.rollout[:8]}: {side.because.rstrip('.')}."


def _what(staged: Staged) -> str:
    stable = f"r{staged.stable}" if staged.stable is not None else "nothing"
    newest = f"the deletion r{staged.newest}" if staged.deletion else f"r{staged.newest}"
    match staged.state:
        case StagedState.CANDIDATE:
            return f"The stable side has {stable} of it, the candidate side has {newest}."
        case StagedState.WAITING:
            return f"Everybody has {stable} of it; {newest} waits for the next rollout."
        case StagedState.STOPPED:
            return f"Everybody has {stable} of it; a rollout took {newest} back."


def staged_sentence(staged: Staged, rollout: str) -> str:
    """Why the newest revision is not what a client gets, as the end of a sentence that names the revision."""
    match staged.state:
        case StagedState.CANDIDATE:
            return f"is only on the candidate side of rollout {rollout[:8]}"
        case StagedState.WAITING:
            return "waits for the next rollout"
        case StagedState.STOPPED:
            return "was taken back by a rollout"
