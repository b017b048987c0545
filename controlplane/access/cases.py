"""Writes the cases that every change of the access rules is tried against."""

from django.db import transaction

from controlplane.access.models import AccessCase
from controlplane.access.selectors import case_list, case_state, client_json
from controlplane.access.values import Case, SavedCase
from controlplane.accounts.principal import Principal
from controlplane.catalog.services import environment_lock
from controlplane.common.errors import Conflict, NotFound
from controlplane.journal.services import audit_record

# More would be tried at every change of a rule, under the environment's lock.
_MAX_CASES = 1_000


@transaction.atomic(durable=True)
def case_create(
    *, environment_key: str, case: Case, blocking: bool, actor: Principal, request_id: str = ""
) -> SavedCase:
    """Save a case, which is then tried at every change of the rules. `blocking`: refuse changes that break it. Raises
    NotFound, and Conflict when there are too many.
    """
    environment = environment_lock(key=environment_key)
    if case_list(environment_key=environment_key).count() >= _MAX_CASES:
        raise Conflict(f"'{environment_key}' has {_MAX_CASES} access cases, as many as are allowed.")
    row = AccessCase.objects.create(
        environment=environment,
        client=client_json(case.client),
        type=case.type,
        name=case.name,
        expect=case.expect.value,
        blocking=blocking,
    )
    _audit_case("access_case.created", row.pk, case, environment_key, actor, request_id)
    return SavedCase(row.pk, case, blocking)


@transaction.atomic(durable=True)
def case_delete(*, environment_key: str, case_id: int, actor: Principal, request_id: str = "") -> SavedCase:
    """Delete a saved case. Raises NotFound."""
    environment_lock(key=environment_key)
    row = case_list(environment_key=environment_key).filter(pk=case_id).first()
    if row is None:
        raise NotFound(f"There is no access case {case_id} in '{environment_key}'.")
    saved = case_state(row)
    row.delete()
    _audit_case("access_case.deleted", case_id, saved.case, environment_key, actor, request_id)
    return saved


def _audit_case(verb: str, case_id: int, case: Case, environment_key: str, actor: Principal, request_id: str) -> None:
    audit_record(
        actor=actor,
        verb=verb,
        subject=f"case/{case_id}",
        environment=environment_key,
        request_id=request_id,
        detail={
            "client": client_json(case.client),
            "type": case.type,
            "name": case.name,
            "expect": case.expect.value,
        },
    )
