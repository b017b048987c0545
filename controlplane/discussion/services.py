"""Adds, edits and deletes comments, and tells whom they mention.

The audit log has who did so, and never the text: what somebody deletes is gone.
"""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import person_or_token, rights_granted, user_named
from controlplane.catalog.selectors import environment_get
from controlplane.clients.foreign_text import one_line
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, NotFound
from controlplane.discussion.mentions import mentioned
from controlplane.discussion.models import Comment
from controlplane.discussion.selectors import comment_get, require_comment, subject_of
from controlplane.discussion.values import MAX_COMMENTS, Subject, text_problem
from controlplane.journal.services import audit_record, event_append
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import VALUE_REFUSED

_TOLD_CHARS = 300


@transaction.atomic(durable=True)
def comment_add(*, subject: Subject, text: str, actor: Principal, request_id: str) -> UUID:
    """Add a comment, and tell whom it mentions; returns its public id. Raises Forbidden where the actor may not,
    Conflict where there are too many, and InputInvalid for a text that is empty, too long or not printable.
    """
    require_comment(actor, subject.environment)
    kept = _judged(text)
    about = {f"{subject.about.value}_id": subject.row}
    if Comment.objects.filter(**about).count() >= MAX_COMMENTS:
        raise Conflict(f"This has {MAX_COMMENTS:,} comments; no more are kept. Nothing was changed.")
    comment = Comment.objects.create(
        environment_id=environment_get(key=subject.environment).id,
        author=actor.name,
        principal=str(person_or_token(actor)),
        text=kept,
        **about,
    )
    _recorded("comment.added", comment, subject, actor, request_id)
    _tell(comment, subject, actor, before="")
    return comment.public_id


@transaction.atomic(durable=True)
def comment_edit(*, public_id: UUID, text: str, actor: Principal, request_id: str) -> None:
    """Change the text of a comment of the actor's own, and tell whom it mentions now; does nothing where it is so.
    Raises NotFound, Forbidden, and InputInvalid as `comment_add` does.
    """
    comment, subject = _locked(public_id, actor)
    require_comment(actor, subject.environment)
    if comment.principal != str(person_or_token(actor)):
        raise Forbidden("Only who wrote a comment may edit it. Nothing was changed.")
    kept, before = _judged(text), comment.text
    if kept == before:
        return
    comment.text, comment.edited_at = kept, timezone.now()
    comment.save(update_fields=["text", "edited_at"])
    _recorded("comment.edited", comment, subject, actor, request_id)
    _tell(comment, subject, actor, before=before)


@transaction.atomic(durable=True)
def comment_delete(*, public_id: UUID, actor: Principal, request_id: str) -> None:
    """Delete a comment of the actor's own; an administrator of the environment deletes anybody's. Raises NotFound and
    Forbidden.
    """
    comment, subject = _locked(public_id, actor)
    is_own = comment.principal == str(person_or_token(actor))
    if not is_own and not actor.may(Role.ADMIN, subject.environment):
        raise Forbidden(
            f"Only who wrote a comment, or an administrator of '{subject.environment}', may delete it. "
            "Nothing was changed."
        )
    _recorded("comment.deleted", comment, subject, actor, request_id)
    comment.delete()


def _locked(public_id: UUID, actor: Principal) -> tuple[Comment, Subject]:
    """The row of a comment, locked until the transaction ends, and what it is about. Raises NotFound, also where the
    actor may not see that.
    """
    comment_get(actor, public_id)
    comment = Comment.objects.select_for_update().filter(public_id=public_id).first()
    if comment is None:
        raise NotFound(f"There is no comment '{public_id}'.")
    return comment, subject_of(comment)


def _judged(text: str) -> str:
    """The text as it is stored. Raises InputInvalid."""
    kept = text.replace("\r\n", "\n").strip()
    if problem := text_problem(kept):
        finding = Finding(code=VALUE_REFUSED.code, severity=Severity.ERROR, detail=problem, pointer="/text")
        raise InputInvalid(f"{problem} Nothing was changed.", findings=(finding,))
    return kept


def _recorded(verb: str, comment: Comment, subject: Subject, actor: Principal, request_id: str) -> None:
    audit_record(
        actor=actor,
        verb=verb,
        subject=subject.key,
        environment=subject.environment,
        request_id=request_id,
        detail={"comment": str(comment.public_id), "author": comment.author, "about": subject.about.value},
    )


def _tell(comment: Comment, subject: Subject, actor: Principal, *, before: str) -> None:
    """Tell each person who is mentioned now and was not before, if they may see the subject: nobody learns here who
    else there is.
    """
    known = {login for logins in mentioned(before) for login in logins}
    told = {str(person_or_token(actor))}
    for logins in mentioned(comment.text):
        found = next((each for login in logins if (each := user_named(login)) is not None), None)
        rights = rights_granted(found) if found is not None and not known.issuperset(logins) else None
        if rights is None or not rights.may(Role.VIEWER, subject.environment) or str(rights.id) in told:
            continue
        told.add(str(rights.id))
        event_append(
            kind="comment.mentioned",
            environment=subject.environment,
            subject=f"comment/{comment.public_id}/{rights.id}",
            payload={
                "recipient": str(rights.id),
                "author": comment.author,
                "about": subject.about.value,
                "key": one_line(subject.key, max_chars=_TOLD_CHARS),
                "comment": str(comment.public_id),
                "text": one_line(comment.text, max_chars=_TOLD_CHARS),
            },
        )
