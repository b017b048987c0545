"""Makes rehearsals: chooses the clients, opens the short candidate side, and ends it (rollouts.md "Rehearsal").

Whoever makes one looks at the answers (`rehearsal_reading.rehearsal_look`) and ends it as soon as they are there. If
they die meanwhile, the deadline in the database ends it.
"""

import secrets
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

import structlog

from controlplane.accounts.principal import Principal
from controlplane.catalog.rehearsals import rehearsals_overdue
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import rehearsal_close, rehearsal_expire, rehearsal_open
from controlplane.catalog.values import Edit, edit_key
from controlplane.common.errors import InputInvalid, InputTooLarge
from controlplane.rollouts.cohort import Member
from controlplane.rollouts.fleet import groups_read, members_read
from controlplane.rollouts.rehearsal import MAX_CLIENTS, MAX_NAMES, of_each_kind
from controlplane.rollouts.rehearsal_reading import Rehearsing
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import VALUE_REFUSED
from xdscore.sides import RolloutTable

log = structlog.get_logger(__name__)

# Whoever made it ends it before that; the deadline is for when they died.
_BEYOND_S: Final = 2.0
_NOTHING_SENT: Final = "Nothing was sent to any client."


def rehearsal_begin(
    *,
    environment_key: str,
    edits: Sequence[Edit],
    clients: Sequence[str] | int,
    within_s: float,
    actor: Principal,
    request_id: str = "",
) -> Rehearsing:
    """Open a rehearsal of these edits. `clients`: node ids or ids of connected clients, or how many of each kind of
    client.

    Raises InputInvalid for clients that are not connected or not in the environment's rehearsal group, with all
    findings; InputTooLarge; and what `catalog.services.rehearsal_open` raises.
    """
    if not edits:
        raise InputInvalid(f"There is nothing to rehearse: name a resource. {_NOTHING_SENT}")
    if len(edits) > MAX_NAMES:
        raise InputTooLarge(
            f"It holds {len(edits):,} resources; a rehearsal takes at most {MAX_NAMES}. {_NOTHING_SENT}"
        )
    chosen = _chosen(environment_key, edits, clients)
    table = RolloutTable(
        id=str(uuid4()),
        step=0,
        picks=frozenset(member.digest for member in chosen),
        groups=(),
        permille=0,
        seed=secrets.token_hex(16),
    )
    foreseen = rehearsal_open(
        environment_key=environment_key,
        edits=edits,
        table=table,
        lasts_s=within_s + _BEYOND_S,
        actor=actor,
        request_id=request_id,
    )
    return Rehearsing(table.id, environment_key, chosen, within_s, foreseen)


def rehearsal_end(rehearsing: Rehearsing) -> None:
    """End a rehearsal: its clients are sent what the stable side has. Does nothing where it has ended already."""
    rehearsal_close(environment_key=rehearsing.environment, rehearsal=rehearsing.id)


def rehearsals_end() -> None:
    """End every rehearsal that is open beyond its deadline, whoever made it: a job of the worker's sweeper."""
    for environment_id in rehearsals_overdue():
        if rehearsal_expire(environment_id=environment_id):
            log.warning("rehearsal.expired", environment_id=environment_id)


def _chosen(environment_key: str, edits: Sequence[Edit], clients: Sequence[str] | int) -> tuple[Member, ...]:
    group = environment_get(key=environment_key).policy.rollout.rehearsal_group
    if not group:
        raise InputInvalid(
            f"No client of '{environment_key}' may rehearse: the environment names no client group for it "
            f"(rollout.rehearsal_group). {_NOTHING_SENT}"
        )
    fleet = members_read(
        environment_key=environment_key,
        names=[edit_key(edit) for edit in edits],
        groups=groups_read(environment_key=environment_key, keys=[group]),
    )
    if isinstance(clients, int):
        chosen = of_each_kind([each for each in fleet.members if group in each.groups], clients)
        if not chosen:
            raise InputInvalid(f"No client of the client group '{group}' is connected. {_NOTHING_SENT}")
    else:
        chosen = _named(environment_key, group, fleet.members, clients)
    if len(chosen) > MAX_CLIENTS:
        raise InputTooLarge(
            f"It means {len(chosen):,} clients; a rehearsal takes at most {MAX_CLIENTS}. {_NOTHING_SENT}"
        )
    return chosen


def _named(environment_key: str, group: str, members: Sequence[Member], clients: Sequence[str]) -> tuple[Member, ...]:
    """The clients with these node ids or ids. Raises InputInvalid with a finding for each that may not rehearse."""
    chosen: dict[str, Member] = {}
    findings: list[Finding] = []
    for index, name in enumerate(clients):
        found = [member for member in members if name in {member.node_id, member.client}]
        inside = [member for member in found if group in member.groups]
        chosen |= {member.client: member for member in inside}
        if inside:
            continue
        detail = f"No client '{shown(name)}' is connected to '{environment_key}'."
        hint = "Name a client by its node id or by its id."
        if found:
            detail = f"The client '{shown(name)}' may not rehearse: it is not in the client group '{group}'."
            hint = f"Clients of '{group}' may (rollout.rehearsal_group of the environment)."
        findings.append(Finding(VALUE_REFUSED.code, Severity.ERROR, detail, hint, pointer=f"/clients/{index}"))
    if findings:
        raise InputInvalid(f"Not all of these clients can rehearse. {_NOTHING_SENT}", findings=tuple(findings))
    return tuple(chosen.values())
