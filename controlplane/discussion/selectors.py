"""Reads comments, and finds what they are about. Values only, never rows.

Whoever may not see the subject is told of it, and of its comments, in the words for one that does not exist.
"""

from uuid import UUID

from django.db.models import QuerySet

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import person_behind
from controlplane.catalog.rights import environment_visible
from controlplane.catalog.selectors import change_get, resource_ever
from controlplane.common.errors import Forbidden, NotFound
from controlplane.discussion.models import Comment
from controlplane.discussion.values import About, CommentView, Subject
from controlplane.incidents.selectors import incident_place
from xdscore.codes import shown
from xdscore.resource_types import ResourceType, by_word


def change_subject(principal: Principal, public_id: UUID) -> Subject:
    """The change with this public id as what comments are about. Raises NotFound."""
    absent = NotFound(f"There is no change '{public_id}'.")
    try:
        change = change_get(public_id=str(public_id))
    except NotFound:
        raise absent from None
    return _seen(principal, Subject(About.CHANGE, change.environment.key, str(change.public_id), change.pk), absent)


def incident_subject(principal: Principal, public_id: str) -> Subject:
    """The incident with this public id as what comments are about. Raises NotFound."""
    environment, row = incident_place(public_id=public_id)
    absent = NotFound(f"There is no incident '{shown(public_id, 64)}'.")
    return _seen(principal, Subject(About.INCIDENT, environment, public_id, row), absent)


def resource_subject(principal: Principal, environment: str, kind: ResourceType, name: str) -> Subject:
    """The resource of this type and name, also where it is deleted, as what comments are about. Raises NotFound."""
    key = environment_visible(principal, environment).key
    row = resource_ever(environment_key=key, kind=kind, name=name)
    return Subject(About.RESOURCE, key, f"{kind.word}/{name}", row)


def comment_list(*, subject: Subject, before: int | None = None, limit: int = 100) -> tuple[CommentView, ...]:
    """The newest comments about a subject, the newest first. `before`: only those with a smaller number."""
    rows = Comment.objects.filter(**{subject.about.value: subject.row}).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return tuple(_view(row, subject) for row in rows[:limit])


def comment_get(principal: Principal, public_id: UUID) -> CommentView:
    """The comment with this public id. Raises NotFound, with one text, where there is none and where the principal may
    not see what it is about.
    """
    row = _whole(Comment.objects.filter(public_id=public_id)).first()
    absent = NotFound(f"There is no comment '{public_id}'.")
    if row is None:
        raise absent
    return _view(row, _seen(principal, subject_of(row), absent))


def may_comment(principal: Principal, environment: str) -> bool:
    """Whether somebody may comment on what they see in an environment: a person who may see it, by a page or a token of
    theirs; a token of nobody's, such as a dashboard's, if it may write there.
    """
    if not principal.may(Role.VIEWER, environment):
        return False
    writes = principal.may(Role.EDITOR, environment) or principal.may(Role.OPERATOR, environment)
    return writes or person_behind(principal.id) is not None


def require_comment(principal: Principal, environment: str) -> None:
    """Raise Forbidden unless somebody may comment on what they see in an environment."""
    if not may_comment(principal, environment):
        raise Forbidden(
            f"Comments in '{environment}' are for people who may see it, and for tokens that may write there. "
            "Nothing was changed."
        )


def subject_of(row: Comment) -> Subject:
    """What the comment of this row is about; read with all three."""
    environment = row.environment.key
    if row.change is not None:
        return Subject(About.CHANGE, environment, str(row.change.public_id), row.change.pk)
    if row.incident is not None:
        return Subject(About.INCIDENT, environment, str(row.incident.public_id), row.incident.pk)
    resource = row.resource
    if resource is None:
        raise ValueError("a comment is about one thing")
    return Subject(About.RESOURCE, environment, f"{by_word[resource.type].word}/{resource.name}", resource.pk)


def _whole(rows: QuerySet[Comment]) -> QuerySet[Comment]:
    return rows.select_related("environment", "change", "incident", "resource")


def _seen(principal: Principal, subject: Subject, absent: NotFound) -> Subject:
    if not principal.may(Role.VIEWER, subject.environment):
        raise absent
    return subject


def _view(row: Comment, subject: Subject) -> CommentView:
    return CommentView(row.pk, str(row.public_id), subject, row.author, row.principal, row.text, row.at, row.edited_at)
