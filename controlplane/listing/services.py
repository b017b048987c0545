"""Keeps, renames, shares and deletes views of lists.

A view is a query of the list's own frame, so it leads nowhere else, and whoever opens it is shown what they may read.
What is shared stands in the audit log with its query; of a view that is one person's own, only that it was kept.
"""

from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.selectors import environment_get
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, NotFound
from controlplane.journal.services import audit_record
from controlplane.listing.frames import Frame
from controlplane.listing.models import MAX_NAME_CHARS, DefaultView, SavedView
from controlplane.listing.registry import frame_of
from controlplane.listing.selectors import may_share, owner_of, visible
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import VALUE_REFUSED

MAX_OWN: Final = 50
"""How many views a person keeps in one environment, and of the lists that are of none."""


@transaction.atomic(durable=True)
def view_save(
    *,
    frame: Frame,
    environment_key: str,
    query: str,
    name: str,
    shared: bool,
    actor: Principal,
    request_id: str,
) -> UUID:
    """Keep a query of a list under a name, instead of the actor's own view that has the name already; returns its
    public id. Raises InputInvalid, Forbidden, and Conflict where the actor has too many.
    """
    kept, called = frame.kept(query, timezone.now()), _name(name)
    if shared:
        _require_sharing(actor, environment_key)
    environment = environment_get(key=environment_key).id if environment_key else None
    own = SavedView.objects.select_for_update().filter(environment=environment, owner=owner_of(actor))
    view = own.filter(listed=frame.name, name=called).first()
    if view is None and own.count() >= MAX_OWN:
        raise Conflict(f"You have {MAX_OWN} views here; no more are kept. Delete one first. Nothing was changed.")
    if view is None:
        view = SavedView(environment_id=environment, listed=frame.name, owner=owner_of(actor), name=called)
    view.query, view.author = kept, actor.name
    _share(view, shared=shared)
    view.save()
    _record("saved", view, environment_key, actor, request_id)
    return view.public_id


@transaction.atomic(durable=True)
def view_change(
    *,
    public_id: UUID,
    environment_key: str,
    actor: Principal,
    request_id: str,
    name: str | None = None,
    query: str | None = None,
    shared: bool | None = None,
) -> None:
    """Change a view of the actor's own: its name, what it asks, and whether everybody of the environment is offered it.
    What is None stays. Raises NotFound, Forbidden, InputInvalid, and Conflict where another one has the name.
    """
    view = _own(public_id, environment_key, actor)
    if name is not None:
        called = _name(name)
        others = SavedView.objects.filter(environment=view.environment_id, listed=view.listed, owner=view.owner)
        if others.filter(name=called).exclude(pk=view.pk).exists():
            raise Conflict(f"You have another view '{shown(called)}' of this list. Nothing was changed.")
        view.name = called
    if query is not None:
        frame = frame_of(view.listed, of_environment=bool(environment_key))
        view.query = frame.kept(query, timezone.now())
    if shared:
        _require_sharing(actor, environment_key)
    if shared is not None:
        _share(view, shared=shared)
    view.save(update_fields=["name", "query", "shared"])
    moved = {"renamed": name is not None, "changed": query is not None}
    moved |= {"shared": shared is True, "unshared": shared is False}
    for verb in (verb for verb, is_so in moved.items() if is_so):
        _record(verb, view, environment_key, actor, request_id)


@transaction.atomic(durable=True)
def view_delete(*, public_id: UUID, environment_key: str, actor: Principal, request_id: str) -> None:
    """Delete a view of the actor's own; an administrator of the environment deletes anybody's that is shared. Raises
    NotFound and Forbidden.
    """
    view = _seen(public_id, environment_key, actor)
    if view.owner != owner_of(actor) and not actor.may(Role.ADMIN, environment_key):
        raise Forbidden(
            f"Only whose view it is, or an administrator of '{environment_key}', may delete it. Nothing was changed."
        )
    _record("deleted", view, environment_key, actor, request_id)
    view.delete()


@transaction.atomic(durable=True)
def view_default(*, public_id: UUID | None, frame: Frame, environment_key: str, actor: Principal) -> None:
    """Let a list open with a view for the actor; with None, with everything. Raises NotFound."""
    environment = environment_get(key=environment_key).id if environment_key else None
    chosen = DefaultView.objects.filter(environment=environment, listed=frame.name, owner=owner_of(actor))
    if public_id is None:
        chosen.delete()
        return
    view = _seen(public_id, environment_key, actor)
    if view.listed != frame.name:
        raise NotFound(f"This list has no view '{public_id}'.")
    chosen.delete()
    DefaultView.objects.create(view=view, environment_id=environment, listed=frame.name, owner=owner_of(actor))


def _seen(public_id: UUID, environment_key: str, actor: Principal) -> SavedView:
    """The row of a view, locked until the transaction ends. Raises NotFound, also where the actor may not see it."""
    view = visible(actor, environment_key).select_for_update(of=("self",)).filter(public_id=public_id).first()
    if view is None:
        raise NotFound(f"This list has no view '{public_id}'.")
    return view


def _own(public_id: UUID, environment_key: str, actor: Principal) -> SavedView:
    view = _seen(public_id, environment_key, actor)
    if view.owner != owner_of(actor):
        raise Forbidden("Only whose view it is may change it. Keep it under a name of your own. Nothing was changed.")
    return view


def _share(view: SavedView, *, shared: bool) -> None:
    """Set whether a view is shared; lists of others open with it no more where it is not."""
    view.shared = shared
    if not shared and view.pk is not None:
        DefaultView.objects.filter(view=view).exclude(owner=view.owner).delete()


def _require_sharing(actor: Principal, environment_key: str) -> None:
    if not environment_key:
        raise InputInvalid("A view of a list that is of no environment cannot be shared. Nothing was changed.")
    if not may_share(actor, environment_key):
        raise Forbidden(
            f"Sharing a view takes a role that may change something in '{environment_key}': editor, access-editor, "
            "operator or admin. Keep it for yourself. Nothing was changed."
        )


def _name(text: str) -> str:
    """The name as it is stored. Raises InputInvalid."""
    name = " ".join(text.split())
    problem = ""
    if not name:
        problem = "A view needs a name."
    elif len(name) > MAX_NAME_CHARS:
        problem = f"The name has {len(name)} characters; at most {MAX_NAME_CHARS} are allowed."
    elif not name.isprintable():
        problem = "The name holds a character that cannot be printed on one line."
    if problem:
        finding = Finding(code=VALUE_REFUSED.code, severity=Severity.ERROR, detail=problem, pointer="/name")
        raise InputInvalid(f"{problem} Nothing was changed.", findings=(finding,))
    return name


def _record(what: str, view: SavedView, environment_key: str, actor: Principal, request_id: str) -> None:
    told = {"list": view.listed, "name": view.name, "query": view.query} if view.shared else {"list": view.listed}
    audit_record(
        actor=actor,
        verb=f"view.{what}",
        subject=str(view.public_id),
        environment=environment_key,
        request_id=request_id,
        detail={**told, "shared": view.shared},
    )
