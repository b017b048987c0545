"""How states look and read: one table, so that a state is the same words, icon and colour on each page (texts.md 3).

Colour is never the only sign: each state has an icon and a word.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.changesets.values import SetState
from controlplane.rollouts.values import ClientState, RolloutState
from controlplane.status.changes import Outcome, Progress
from controlplane.status.environments import Headline
from controlplane.status.values import Status


@dataclass(frozen=True, slots=True)
class Look:
    """How a badge looks: its tone (good, warn, bad, busy, quiet or plain), its icon and its word."""

    tone: str
    icon: str
    label: str


_UNKNOWN: Final = ("quiet", "circle-dashed")

LOOKS: Final[dict[str, Look]] = {
    # A change (interfaces.md section 4)
    "saved": Look("busy", "clock", "waiting"),
    "built": Look("busy", "rocket", "built"),
    "published": Look("busy", "rocket", "published"),
    "settled": Look("good", "circle-check", "settled"),
    "refused": Look("bad", "circle-x", "refused"),
    "lost": Look("bad", "alert-triangle", "lost"),
    "unchanged": Look("quiet", "minus", "no difference for clients"),
    "taken_back": Look("quiet", "arrow-back-up", "taken back"),
    "superseded": Look("quiet", "arrow-right", "superseded"),
    "failed": Look("bad", "circle-x", "failed"),
    "candidate": Look("busy", "route", "on its way"),
    "stopped": Look("bad", "arrow-back-up", "stopped by its rollout"),
    # A route case
    "holds": Look("good", "circle-check", "holds"),
    "fails": Look("bad", "circle-x", "fails"),
    # A rollout, its verdicts, and what becomes of its resources
    "rollout_running": Look("busy", "rocket", "running"),
    "rollout_waiting": Look("warn", "user", "waits for somebody"),
    "rollout_paused": Look("warn", "player-pause", "paused"),
    "rollout_done": Look("good", "circle-check", "done"),
    "rollout_partly": Look("warn", "circle-check", "done in part"),
    "rollout_reverted": Look("bad", "arrow-back-up", "taken back"),
    "rollout_aborted": Look("bad", "ban", "aborted"),
    "rollout_step_done": Look("good", "circle-check", "passed"),
    "rollout_step_now": Look("busy", "circle-dot", "now"),
    "rollout_step_ahead": Look("quiet", "circle-dashed", "ahead"),
    "rollout_step_never": Look("quiet", "minus", "not reached"),
    "inconclusive": Look("warn", "question-mark", "inconclusive"),
    "promoted": Look("good", "circle-check", "everywhere"),
    "reverted": Look("bad", "arrow-back-up", "taken back"),
    "returned": Look("quiet", "clock", "waits for the next rollout"),
    # A change set
    "set_draft": Look("quiet", "edit", "draft"),
    "set_review": Look("busy", "user", "in review"),
    "set_approved": Look("good", "circle-check", "approved"),
    "set_scheduled": Look("busy", "clock", "scheduled"),
    "set_published": Look("good", "rocket", "published"),
    "set_rejected": Look("bad", "circle-x", "turned down"),
    "set_expired": Look("warn", "clock", "expired"),
    "set_stale": Look("warn", "alert-triangle", "stale"),
    # A client of a rollout
    "taken": Look("good", "circle-check", "took it"),
    "awaited": Look("busy", "circle-dot", "has not answered yet"),
    "lost_stream": Look("bad", "plug", "its stream ended"),
    "unexposed": Look("quiet", "minus", "asks for none of it"),
    # A build
    "fenced": Look("quiet", "minus", "overtaken by another build"),
    # A resource
    "proven": Look("good", "circle-check", "acknowledged"),
    "unproven": Look("quiet", "circle-dashed", "not acknowledged yet"),
    "quarantined": Look("bad", "ban", "quarantined"),
    "served_proven": Look("good", "circle-check", "published"),
    "served_unproven": Look("quiet", "circle-dashed", "published"),
    "unbuilt": Look("busy", "clock", "waiting"),
    "stalled": Look("warn", "player-pause", "stalled"),
    "withheld": Look("bad", "eye-off", "withheld"),
    "deleted": Look("quiet", "trash", "deleted"),
    "created": Look("good", "plus", "created"),
    "updated": Look("busy", "edit", "updated"),
    # A resource of manifests that are about to be stored
    "foreseen_created": Look("good", "plus", "new"),
    "foreseen_updated": Look("busy", "edit", "changed"),
    "foreseen_deleted": Look("warn", "trash", "taken out"),
    "foreseen_same": Look("quiet", "check", "same"),
    "foreseen_turned_down": Look("bad", "circle-x", "turned down"),
    # A node of the graph; beside these it has the words of resources
    "in_graph": Look("plain", "circle", "published"),
    "elsewhere": Look("quiet", "link", "elsewhere"),
    "unused": Look("quiet", "circle-dashed", "unused"),
    # An environment; beside these it has the words of resources
    "held": Look("warn", "player-pause", "on hold"),
    "frozen": Look("warn", "lock", "holds now"),
    "freeze_later": Look("quiet", "clock", "later"),
    "freeze_over": Look("quiet", "check", "over"),
    "default_view": Look("quiet", "check", "opens first"),
    "empty": Look("quiet", "minus", "no resources"),
    "served": Look("good", "circle-check", "all published"),
    # What a client has of a resource; the names of A88 and CSDS
    "ACKED": Look("good", "circle-check", "ACKED"),
    "SENT": Look("busy", "circle-dot", "SENT"),
    "NACKED": Look("bad", "circle-x", "NACKED"),
    "REQUESTED": Look("quiet", "dots", "REQUESTED"),
    "SILENT": Look("quiet", "eye-off", "SILENT"),  # there is nothing to send, and the client is too old to be told
    "UNKNOWN": Look("warn", "question-mark", "UNKNOWN"),
    "ERROR_SENT": Look("bad", "lock", "ERROR_SENT"),
    "ERROR_SENT_ABSENT": Look("warn", "eye-off", "ERROR_SENT"),  # NOT_FOUND and INTERNAL: it is not denied
    # How a client's own word differs from what Parley believes
    "other_content": Look("bad", "alert-triangle", "other content"),
    "behind": Look("warn", "clock", "behind"),
    "missing": Look("bad", "x", "missing"),
    "refuses": Look("bad", "circle-x", "refuses"),
    "in_error": Look("bad", "alert-triangle", "in error"),
    "not_in_use": Look("warn", "player-pause", "not in use"),
    "leaving": Look("warn", "arrow-right", "leaving"),
    "keeps": Look("warn", "info-circle", "keeps it"),
    "runs_refused": Look("bad", "alert-triangle", "uses it"),
    "static": Look("warn", "lock", "its own"),
    # A part of Parley itself
    "works": Look("good", "circle-check", "works"),
    "wrong": Look("warn", "alert-triangle", "look here"),
    "waiting": Look("quiet", "clock", "not yet"),
    # A delivery to a channel; beside these "failed"
    "delivered": Look("good", "circle-check", "taken"),
    "pending": Look("busy", "clock", "waits"),
    # A client as a whole
    "refusing": Look("bad", "circle-x", "refusing"),
    "silent": Look("warn", "clock", "silent"),
    "denied": Look("bad", "lock", "denied"),
    "asks_in_vain": Look("warn", "eye-off", "asks in vain"),
    "connected": Look("good", "circle-check", "connected"),
    "gone": Look("quiet", "circle-dashed", "gone"),
    "acked": Look("good", "circle-check", "ACKED"),
    "sent": Look("busy", "circle-dot", "SENT"),
    "nacked": Look("bad", "circle-x", "NACKED"),
    "requested": Look("quiet", "dots", "REQUESTED"),
    # What happens on a stream, beside these
    "opened": Look("quiet", "plug-connected", "opened"),
    "subscribed": Look("quiet", "plus", "subscribed"),
    "moved": Look("busy", "arrow-right", "moved"),
    "closed": Look("quiet", "plug", "closed"),
    # An incident
    "open": Look("bad", "alert-triangle", "open"),
    "acknowledged": Look("warn", "user", "acknowledged"),
    "resolved": Look("good", "circle-check", "resolved"),
    "ignored": Look("quiet", "eye-off", "ignored"),
    # What a rule says
    "allow": Look("good", "lock-open", "allow"),
    "deny": Look("bad", "lock", "deny"),
    "hide": Look("warn", "eye-off", "hide"),
    "off": Look("quiet", "player-pause", "not in force"),
    # A token, and somebody who signs in
    "good": Look("good", "circle-check", "good"),
    "ending": Look("warn", "clock", "ends soon"),
    "expired": Look("quiet", "clock", "expired"),
    # An invitation
    "invitation_open": Look("busy", "clock", "not used yet"),
    "invitation_void": Look("warn", "alert-triangle", "gives nothing"),
    "invitation_accepted": Look("good", "circle-check", "accepted"),
    "invitation_withdrawn": Look("quiet", "ban", "withdrawn"),
    "invitation_expired": Look("quiet", "clock", "expired"),
    "revoked": Look("quiet", "ban", "ended"),
    "misled": Look("warn", "alert-triangle", "selectors lead it elsewhere"),
    "active": Look("good", "circle-check", "may sign in"),
    "disabled": Look("quiet", "lock", "may not sign in"),
    # A rung of Explain
    "pass": Look("good", "check", "pass"),
    "fail": Look("bad", "x", "fail"),
    "unknown": Look("warn", "question-mark", "cannot know"),
    "skipped": Look("quiet", "minus", "not asked"),
    "depends": Look("warn", "users", "It depends on who asks"),
    # A station of a request's way, and what a log says beside it
    "unreached": Look("quiet", "minus", "not reached"),
    "log_same": Look("good", "circle-check", "the same"),
    "log_differs": Look("warn", "arrows-diff", "differs"),
    "log_open": Look("quiet", "question-mark", "not comparable"),
    "served_it": Look("good", "circle-check", "served"),
    "yes": Look("good", "circle-check", "Yes"),
    "no": Look("bad", "circle-x", "No"),
    # How loud a message is
    "page": Look("bad", "alert-triangle", "urgent"),
    "normal": Look("warn", "info-circle", "normal"),
    "quiet": Look("quiet", "minus", "quiet"),
    # How much a finding matters
    "error": Look("bad", "circle-x", "error"),
    "warning": Look("warn", "alert-triangle", "warning"),
    "note": Look("quiet", "info-circle", "note"),
}


# Of environments; the others have the look of their word.
_ENVIRONMENTS: Final = {Headline.PUBLISHED: "served", Headline.WAITING: "unbuilt"}
# Of resources. What is served as written is green only where a client has said that it runs it (texts.md 3:
# published is not running).
_RESOURCES: Final = {Status.PUBLISHED: "served_unproven", Status.WAITING: "unbuilt"}
# Of clients of rollouts, where the word means something else elsewhere.
_ROLLOUT_CLIENTS: Final = {ClientState.WAITING: "awaited", ClientState.LOST: "lost_stream"}
# Of changes: `waiting` is the same for them as for what they wrote.
_CHANGES: Final = {Outcome.WAITING: "saved"}


def look_of_environment(headline: Headline) -> str:
    """The key in `LOOKS` of the badge for an environment that stands so."""
    return _ENVIRONMENTS.get(headline, headline.value)


def look_of_resource(status: Status, *, acknowledged: bool = False) -> str:
    """The key in `LOOKS` of the badge for a resource with this status. `acknowledged`: a client acknowledged its newest
    revision.
    """
    if status is Status.PUBLISHED and acknowledged:
        return "served_proven"
    return _RESOURCES.get(status, status.value)


def look_of_change(status: Outcome | Progress) -> str:
    """The key in `LOOKS` of the badge for a change with this status."""
    return _CHANGES[status] if isinstance(status, Outcome) and status in _CHANGES else status.value


def look_of_rollout(state: RolloutState, *, reverted: int) -> str:
    """The key in `LOOKS` of the badge for a rollout. `reverted`: how many of its resources were taken back."""
    return "rollout_partly" if state is RolloutState.DONE and reverted else f"rollout_{state.value}"


def look_of_set(state: SetState) -> str:
    """The key in `LOOKS` of the badge for a change set that stands so."""
    return f"set_{state.value}"


def look_of_rollout_client(state: ClientState) -> str:
    """The key in `LOOKS` of the badge for what a client of a rollout said."""
    return _ROLLOUT_CLIENTS.get(state, state.value)


def look_of(state: str) -> Look:
    """How the badge for a key of `LOOKS` looks; a key that is not in the table is shown as a word."""
    found = LOOKS.get(state)
    return found if found is not None else Look(*_UNKNOWN, state.replace("_", " "))
