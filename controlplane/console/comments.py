"""Comments on the pages of what they are about, and the pages on which one is written, edited and deleted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse

from controlplane.accounts.principal import Role
from controlplane.common.errors import ControlPlaneError, Forbidden, NotFound
from controlplane.console.pages import Page
from controlplane.console.resources import resource_url
from controlplane.discussion.selectors import (
    change_subject,
    comment_get,
    comment_list,
    incident_subject,
    may_comment,
    resource_subject,
)
from controlplane.discussion.services import comment_add, comment_delete, comment_edit
from controlplane.discussion.values import MAX_TEXT_CHARS, About, CommentView, Subject
from xdscore.names import canonical, name_problem
from xdscore.resource_types import by_word

_SHOWN: Final = 50
_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class CommentLine:
    """A comment on a page. `own`: the reader wrote it; `deletable`: the reader may delete it."""

    comment: CommentView
    own: bool
    deletable: bool


def comments_shown(page: Page, subject: Subject) -> Mapping[str, object]:
    """The template values of the comments on a subject: the newest, or those before the number in the URL, newest
    last.
    """
    before = page.request.GET.get("comments_before", "")
    older = before.isascii() and before.isdigit() and len(before) <= _DIGITS
    found = comment_list(subject=subject, before=int(before) if older else None, limit=_SHOWN + 1)
    administers = page.principal.may(Role.ADMIN, subject.environment)
    lines = [
        CommentLine(each, own, own or administers)
        for each in reversed(found[:_SHOWN])
        for own in (each.principal == str(page.principal.id),)
    ]
    return {
        "subject": subject,
        "comments": lines,
        "comments_older": found[_SHOWN - 1].number if len(found) > _SHOWN else None,
        "comments_later": older,
        "may_comment": may_comment(page.principal, subject.environment),
        "max_comment": MAX_TEXT_CHARS,
    }


class CommentsPage(Page):
    """Adds a comment; with something wrong in it, the page to mend it."""

    template = "comments/edit.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002 - Django's
        """Say where comments are, to somebody who comes back to the address of the form. Raises NotFound."""
        raise NotFound("Comments stand on the pages of the change, the incident or the resource that they are about.")

    def post(self, request: HttpRequest) -> HttpResponse:
        """Add the comment in the form, then redirect to the page of what it is about."""
        subject = _subject(self, request.POST)
        self.enter(subject.environment)
        text = request.POST.get("text", "")
        try:
            public_id = comment_add(subject=subject, text=text, actor=self.principal, request_id=self.request_id)
        except ControlPlaneError as error:
            context = {"subject": subject, "back": page_of(subject), "text": text, "error": error}
            return self.page({**context, "max_comment": MAX_TEXT_CHARS}, status=error.status)
        messages.success(request, "Your comment stands below.")
        return redirect(f"{page_of(subject)}#comment-{public_id}")


class CommentPage(Page):
    """The page on which a comment is edited, and from which it is deleted."""

    template = "comments/edit.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest, comment_id: UUID, error: ControlPlaneError | None = None) -> HttpResponse:
        """The form with the comment's text; with `error`, with what was typed and what is wrong with it."""
        comment = comment_get(self.principal, comment_id)
        self.enter(comment.subject.environment)
        own = comment.principal == str(self.principal.id)
        if not own and not self.may(Role.ADMIN):
            raise Forbidden("Only who wrote a comment may edit it.")
        context = {
            "comment": comment,
            "own": own,
            "subject": comment.subject,
            "back": page_of(comment.subject),
            "text": request.POST.get("text", "") if error is not None else comment.text,
            "max_comment": MAX_TEXT_CHARS,
            "error": error,
        }
        return self.page(context, status=error.status if error is not None else 200)

    def post(self, request: HttpRequest, comment_id: UUID) -> HttpResponse:
        """Save the comment, or delete it, then redirect to the page of what it is about."""
        comment = comment_get(self.principal, comment_id)
        back = page_of(comment.subject)
        try:
            if request.POST.get("action") == "delete":
                comment_delete(public_id=comment_id, actor=self.principal, request_id=self.request_id)
                messages.success(request, "The comment is gone; the audit log keeps that it was there.")
                return redirect(back)
            text = request.POST.get("text", "")
            comment_edit(public_id=comment_id, text=text, actor=self.principal, request_id=self.request_id)
        except ControlPlaneError as error:
            return self.get(request, comment_id, error)
        messages.success(request, "Your comment is changed.")
        return redirect(f"{back}#comment-{comment_id}")


def _subject(page: Page, given: QueryDict) -> Subject:
    """What the form's comment is about. Raises NotFound."""
    key = given.get("key", "")
    match given.get("about", ""):
        case About.CHANGE:
            try:
                return change_subject(page.principal, UUID(key))
            except ValueError:
                pass
        case About.INCIDENT:
            return incident_subject(page.principal, key)
        case About.RESOURCE:
            word, _, name = key.partition("/")
            kind = by_word.get(word)
            if kind is not None and name and not name_problem(name):
                return resource_subject(page.principal, given.get("environment", ""), kind, canonical(name))
    raise NotFound("What this comment is about does not exist. Nothing was changed.")


def page_of(subject: Subject) -> str:
    """The URL of the page of what a comment is about."""
    if subject.about is About.RESOURCE:
        word, _, name = subject.key.partition("/")
        return f"{resource_url(subject.environment, word, name)}&tab=comments"
    return reverse(subject.about.value, args=[subject.key])


urlpatterns = [
    path("comments", CommentsPage.as_view(), name="comments"),
    path("comments/<uuid:comment_id>", CommentPage.as_view(), name="comment"),
]
