"""Reads and writes which words lead to tickets. An administrator of an environment says so for it, one of all of them
for all.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.rights import environment_visible, require
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.discussion.linking import Ticket, ticket_problems
from controlplane.discussion.models import TicketLink
from controlplane.journal.services import audit_record
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import VALUE_REFUSED

MAX_LINKS: Final = 20
"""As many may an environment have, and as many may hold in all."""


@dataclass(frozen=True, slots=True)
class TicketLinkView:
    """A ticket link. `environment`: None where it holds in all."""

    id: int
    environment: str | None
    ticket: Ticket


def ticket_link_list(*, environment_keys: Collection[str]) -> tuple[TicketLinkView, ...]:
    """The ticket links of these environments, those that hold in all first."""
    rows = TicketLink.objects.select_related("environment").filter(
        Q(environment=None) | Q(environment__key__in=list(environment_keys))
    )
    return tuple(_view(row) for row in rows.order_by(F("environment__key").asc(nulls_first=True), "prefix"))


def tickets_of(*, environment_key: str) -> tuple[Ticket, ...]:
    """Which words lead to tickets in the texts of an environment; its own go before those of all."""
    found = {each.ticket.prefix: each.ticket for each in ticket_link_list(environment_keys=[environment_key])}
    return tuple(found.values())


@transaction.atomic(durable=True)
def ticket_link_add(*, form: str, url: str, environment_key: str | None, actor: Principal, request_id: str) -> int:
    """Add a ticket link; returns its id. Raises Forbidden, InputInvalid with everything that is wrong, and Conflict
    where there are too many or the words lead somewhere already.
    """
    environment = environment_visible(actor, environment_key).id if environment_key is not None else None
    require(actor, Role.ADMIN, environment_key)
    if problems := ticket_problems(form, url):
        findings = tuple(
            Finding(code=VALUE_REFUSED.code, severity=Severity.ERROR, detail=each, pointer=f"/{field}")
            for field, each in problems.items()
        )
        raise InputInvalid(f"{' '.join(problems.values())} Nothing was changed.", findings=findings)
    held = TicketLink.objects.filter(environment=environment)
    if held.count() >= MAX_LINKS:
        raise Conflict(f"There are {MAX_LINKS} ticket links here; no more are kept. Nothing was changed.")
    prefix = form.removesuffix("{number}")
    try:
        with transaction.atomic():
            link = TicketLink.objects.create(environment_id=environment, prefix=prefix, url=url)
    except IntegrityError:
        raise Conflict(f"'{form}' leads somewhere already: delete that first. Nothing was changed.") from None
    _recorded("ticket_link.added", link, actor, request_id)
    return link.pk


@transaction.atomic(durable=True)
def ticket_link_delete(*, link_id: int, actor: Principal, request_id: str) -> None:
    """Delete a ticket link. Raises NotFound, with one text, where there is none and where the actor may not see it, and
    Forbidden.
    """
    link = TicketLink.objects.select_related("environment").filter(pk=link_id).first()
    key = link.environment.key if link is not None and link.environment is not None else None
    if link is None or (key is not None and not actor.may(Role.VIEWER, key)):
        raise NotFound(f"There is no ticket link {link_id}.")
    require(actor, Role.ADMIN, key)
    _recorded("ticket_link.deleted", link, actor, request_id)
    link.delete()


def _recorded(verb: str, link: TicketLink, actor: Principal, request_id: str) -> None:
    ticket = Ticket(link.prefix, link.url)
    audit_record(
        actor=actor,
        verb=verb,
        subject=ticket.form,
        environment=link.environment.key if link.environment is not None else "",
        request_id=request_id,
        detail={"url": link.url},
    )


def _view(row: TicketLink) -> TicketLinkView:
    key = row.environment.key if row.environment is not None else None
    return TicketLinkView(row.pk, key, Ticket(row.prefix, row.url))
