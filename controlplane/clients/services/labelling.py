"""Labels on clients: what people call them, to find them again.

A label says nothing to a client and decides nothing about it: who may read what follows from what is verified of a
client, and from groups. So labels make no change of the catalogue, but one entry in the audit log.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from django.conf import settings
from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.rights import require
from controlplane.catalog.services import environment_lock
from controlplane.clients.filtering import listed
from controlplane.clients.labelling import LABELLER, ClientsLabelled, labelling_check
from controlplane.clients.models import Client, ClientLabels
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.journal.services import audit_record
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.labels import LabelEdits, Labels, count_problem, edit_words, edited, packed, unpacked
from xdscore.schema.codes import VALUE_REFUSED

_MAX_TOLD: Final = 50  # of the clients, in the audit log


@transaction.atomic(durable=True)
def clients_label(
    *, environment_key: str, clients: Collection[str], edits: LabelEdits, actor: Principal, request_id: str = ""
) -> ClientsLabelled:
    """Set and remove labels of these clients of an environment, by id: of all of them or of none.

    Raises Forbidden, InputInvalid, NotFound (with each that is not known, or is of another environment),
    and Conflict where the environment would have more labelled clients than it may have clients.
    """
    require(actor, LABELLER, environment_key)
    wanted = tuple(dict.fromkeys(clients))
    labelling_check(wanted, edits)
    environment = environment_lock(key=environment_key)
    named = dict(Client.objects.filter(environment=environment, pk__in=listed(wanted)).values_list("pk", "node_id"))
    _require_known(wanted, named, environment_key)
    before = dict.fromkeys(wanted, "")
    before |= dict(ClientLabels.objects.filter(pk__in=listed(wanted)).values_list("pk", "labels"))
    after = {each: edited(unpacked(before[each]), edits) for each in wanted}
    _require_few(after, named)
    moved = {each: packed(labels) for each, labels in after.items() if packed(labels) != before[each]}
    if moved:
        _store(environment.pk, moved)
        audit_record(
            actor=actor,
            verb="clients.labelled",
            subject=next(iter(moved)) if len(moved) == 1 else f"{len(moved):,} clients",
            environment=environment_key,
            request_id=request_id,
            detail={"labels": list(edit_words(edits)), "clients": list(moved)[:_MAX_TOLD], "count": len(moved)},
        )
    return ClientsLabelled(len(wanted), tuple(moved))


def _require_known(wanted: Sequence[str], named: Mapping[str, str], environment_key: str) -> None:
    absent = [each for each in wanted if each not in named]
    if not absent:
        return
    said = (f"There is no client '{shown(each, 64)}' in '{environment_key}'." for each in absent)
    raise NotFound(
        f"{len(absent)} of {len(wanted)} clients are not known in '{environment_key}'. A client is forgotten a day "
        "after its last stream. Nothing was changed.",
        findings=tuple(Finding(NotFound.code, Severity.ERROR, each) for each in said),
    )


def _require_few(after: Mapping[str, Labels], named: Mapping[str, str]) -> None:
    crowded = [(named[each], problem) for each, labels in after.items() if (problem := count_problem(labels))]
    if crowded:
        findings = tuple(
            Finding(VALUE_REFUSED.code, Severity.ERROR, f"The client '{shown(node_id)}' {problem}.")
            for node_id, problem in crowded
        )
        raise InputInvalid("A client would have too many labels. Nothing was changed.", findings=findings)


def _store(environment: int, moved: Mapping[str, str]) -> None:
    """Store the labels of these clients, packed. Raises Conflict where too many would have some."""
    ClientLabels.objects.filter(pk__in=listed([each for each, labels in moved.items() if not labels])).delete()
    kept = [
        ClientLabels(client_id=each, environment_id=environment, labels=labels)
        for each, labels in moved.items()
        if labels
    ]
    ClientLabels.objects.bulk_create(
        kept, update_conflicts=True, unique_fields=["client"], update_fields=["labels", "gone_at"]
    )
    room = settings.PARLEY.limits.clients_per_environment
    if kept and ClientLabels.objects.filter(environment=environment).count() > room:
        raise Conflict(
            f"More than {room:,} clients would have labels here, those that are forgotten included. Remove labels that "
            "nobody looks for. Nothing was changed."
        )
