"""Waits for what the fleet says to a change, and stops at the first fact that decides."""

import re
import time
from dataclasses import dataclass
from typing import Final

from xdsctl.exits import Exit, JsonObject, Outcome, UsageError
from xdsctl.session import Session
from xdsctl.spread import spread_lines, with_spread

_LONGEST_WAIT_S: Final = 20
_INCIDENT_S: Final = 3.0  # NACKs are digested every second
_LOOK_S: Final = 0.2
_MAX_WARNINGS: Final = 20
_TIME: Final = re.compile(r"(\d{1,6})(ms|s|m|h)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SILENT: Final = re.compile(r"silent(?:>(\d{1,3})%)?")
_ENDED: Final = frozenset({"settled", "unchanged", "superseded", "failed", "stopped"})
# What a client refuses of it meanwhile decides nothing: others are asked, too (rollouts.md R8).
_ROLLING: Final = frozenset({"saved", "candidate"})


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When a rollout counts as failed, and how many seconds to wait for it. `nack`: at the first NACK. `silent_share`:
    when a larger share of the clients than this is silent; 1: never.
    """

    seconds: float
    nack: bool
    silent_share: float

    @staticmethod
    def of(fail_on: str, timeout: str) -> "Tolerance":
        """The tolerance that the options say, texts like `nack,silent>2%` and `5m`. Raises UsageError for texts of
        another form.
        """
        nack, share = False, 1.0
        for part in fail_on.split(","):
            silent = _SILENT.fullmatch(part.strip())
            if part.strip() == "nack":
                nack = True
            elif silent:
                share = int(silent[1] or 0) / 100
            elif part.strip():
                raise UsageError(f"--fail-on does not know '{part.strip()}'; it takes nack, silent and silent>N%.")
        return Tolerance(seconds_of(timeout, "--timeout"), nack, share)


def seconds_of(text: str, option: str) -> float:
    """The seconds in a text like 90s, 5m or 500ms. Raises UsageError for any other text; the error names `option`."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise UsageError(f"{option} must be a time like 90s, 5m or 1h; '{text}' is none.")
    return int(match[1]) * _UNITS[match[2] or "s"]


def follow(session: Session, change_id: str, tolerance: Tolerance, *, spread: bool = False) -> Outcome:
    """Wait until a change has rolled out or failed, print it, and return the command's outcome. After a failure that is
    the sentence of the change's incident. `spread`: how it spread is printed, too.
    """
    printer = session.printer
    deadline = time.monotonic() + tolerance.seconds
    # Where a refusal decides, the clients that have not spoken yet are not waited for.
    wanted = "decided" if tolerance.nack else "settled"
    with printer.progress(f"waiting for the fleet to take change {change_id}"):
        change = _read(session, change_id)
        while not _decided(change, tolerance) and (left := deadline - time.monotonic()) > 0:
            wait_s = max(1, min(_LONGEST_WAIT_S, int(left)))
            change = _read(session, change_id, **{"wait": f"{wait_s}s", "for": wanted})
        change = _told(session, change)
    shown = with_spread(session, change) if spread else change
    printer.document(shown, lambda: summary(shown), name=change["id"])
    return _outcome(change, tolerance)


def _told(session: Session, change: JsonObject) -> JsonObject:
    """The change as it is now. If clients refused it, it is read again until the server has made an incident of that,
    which takes a moment.
    """
    patience = time.monotonic() + _INCIDENT_S
    while change["counts"]["nacked"] and not change["incidents"] and time.monotonic() < patience:
        time.sleep(_LOOK_S)
        change = _read(session, change["id"])
    return change


def _read(session: Session, change_id: str, **waiting: str) -> JsonObject:
    found: JsonObject = session.api.get(f"/changes/{change_id}", **waiting)
    return found


def held_back(change: JsonObject) -> list[JsonObject]:
    """The names that a change wrote and that are not served as written. A server of the version before sends them as
    `held`.
    """
    names: list[JsonObject] = change["held_back"] if "held_back" in change else change["held"]
    return names


def summary(change: JsonObject) -> str:
    """A change as lines of text for people."""
    counts = change["counts"]
    # A server of the version before says nothing of what is not in use.
    unused = counts.get("not_in_use", 0)
    lines = [
        f"change   {change['id']}",
        f"state    {change['state']}" + (f", epoch {change['epoch']}" if change["epoch"] else ""),
        *([f"status   {change['status'].replace('_', ' ')}"] if _troubled(change) else ()),
        f"author   {change['author']}" + (f": {change['message']}" if change["message"] else ""),
        f"clients  {counts['clients']}: {counts['acked']} acked, {counts['nacked']} nacked, {counts['silent']} silent"
        + (f", {unused} hold it and do not use all of it yet" if unused else ""),
    ]
    lines += [f"not in use {each['message']}" for each in change.get("not_in_use", ())]
    lines += [f"unserved ADS {each['replica']}: {each['reason']}" for each in change.get("unserved", ())]
    lines += [f"held back {each['type']}/{each['name']}: {each['reason']}" for each in held_back(change)]
    warned = [each for each in change.get("findings", ()) if each["severity"] == "warning"]
    lines += [f"warning  {each['code']} {each['detail']}" for each in warned[:_MAX_WARNINGS]]
    lines += [f"warning  and {len(warned) - _MAX_WARNINGS} more"] if len(warned) > _MAX_WARNINGS else []
    lines += [f"lost     {line}" for line in loss_lines(change.get("loss"))]
    if change.get("rollout"):
        lines.append(f"rollout  {change['rollout']}")
    lines += [f"reverted {each['type']}/{each['name']}" for each in change.get("reverted", ())]
    lines += [f"incident {each['id']} {incident_sentence(each)}" for each in change["incidents"]]
    lines += spread_lines(change["convergence"]) if "convergence" in change else []
    return "\n".join(lines)


def _troubled(change: JsonObject) -> bool:
    """Whether the change has a `status` that says more than its `state`. False when a server of the version before
    sends none.
    """
    return bool(change.get("status", change["state"]) != change["state"] and change["state"] != "saved")


def incident_sentence(incident: JsonObject) -> str:
    """An incident in one sentence: what is refused, by how many clients and in which words; or what clients lost by a
    change.
    """
    if is_loss(incident):
        return str(incident["message"])
    named = f"{incident['type']} '{incident['name']}'" if incident["name"] else f"a {incident['type']} nobody names"
    clients = incident["clients"]
    return f"{named} is refused by {clients['nacked']} of {clients['sent']} clients: {incident['message']}"


def loss_lines(loss: JsonObject | None) -> list[str]:
    """Lines about what connected clients lose by a change: how many of them, of which kinds, and which names. No lines
    when `loss` is None.
    """
    if not loss:
        return []
    kinds = ", ".join(f"{count} {kind}" for kind, count in loss["kinds"].items())
    names = [f"{each['type']} '{each['name']}' by {each['clients']}" for each in loss["names"]]
    return [
        f"{loss['clients']} of {loss['connected']} connected clients: {kinds}",
        *names,
        *(["and more names"] if loss["truncated"] else []),
    ]


def is_loss(incident: JsonObject) -> bool:
    """Whether the incident is about what clients lost by a change, not about refusals. False when a server of the
    version before does not say.
    """
    return incident.get("cause") == "loss"


def stopped_sentence(change: JsonObject) -> str:
    """What became of a change of which a rollout took something back: what that is, and in whose words."""
    names = ", ".join(f"{each['type']} '{each['name']}'" for each in change["reverted"])
    told = "; ".join(incident_sentence(each) for each in change["incidents"] if not is_loss(each))
    return f"Its rollout took it back before the fleet had it: {names or 'all of it'}.{f' {told}' if told else ''}"


def _decided(change: JsonObject, tolerance: Tolerance) -> bool:
    return change["state"] in _ENDED or (tolerance.nack and change["state"] not in _ROLLING and _refused(change))


def _refused(change: JsonObject) -> bool:
    return change["counts"]["nacked"] > 0 or any(not is_loss(each) for each in change["incidents"])


def _unserved(change: JsonObject) -> str:
    """The end of a sentence, about ADS processes that do not serve the change; empty when all serve it, or a server of
    the version before does not say.
    """
    unserved = change.get("unserved", ())
    if not unserved:
        return ""
    first = f" and ADS {unserved[0]['replica']} does not serve it: {unserved[0]['reason']}"
    return first if len(unserved) == 1 else f"{first} (and {len(unserved) - 1} more)"


def _outcome(change: JsonObject, tolerance: Tolerance) -> Outcome:
    counts, state = change["counts"], change["state"]
    if state == "stopped":
        return Outcome(Exit.NO, stopped_sentence(change))
    if tolerance.nack and state not in _ROLLING and _refused(change):
        told = "; ".join(incident_sentence(each) for each in change["incidents"] if not is_loss(each))
        return Outcome(Exit.NO, told or f"{counts['nacked']} of {counts['clients']} clients refuse it.")
    if state == "failed":
        return Outcome(Exit.NO, f"The change was not published: {change['detail']}")
    if state not in _ENDED:
        return Outcome(
            Exit.UNDECIDED,
            f"Time ran out while the change is {state}{_unserved(change)}; it goes on without this command.",
        )
    if counts["silent"] > tolerance.silent_share * counts["clients"]:
        return Outcome(Exit.NO, f"{counts['silent']} of {counts['clients']} clients did not answer.")
    names = held_back(change)
    held = f"; {len(names)} resources are held back" if names else ""
    return Outcome(
        text=f"Epoch {change['epoch']} serves it{held}." if change["epoch"] else "No client sees a difference."
    )
