"""The tables of comments and ticket links. Private to this app's services and selectors."""

import uuid

from django.db import models
from django.utils import timezone

from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.discussion.linking import MAX_PREFIX_CHARS, MAX_URL_CHARS


class Comment(models.Model):
    """What somebody said of a change, an incident or a resource: one of the three is set, and the comment goes with it.

    `author`, `principal`: the name that who wrote it had then, and the id of the person, also where they used a token
    of theirs; of nobody's token, its own. `edited_at`: null where the text is as it was written.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, related_name="+")
    change = models.ForeignKey("catalog.Change", on_delete=models.CASCADE, null=True, related_name="+")
    incident = models.ForeignKey("incidents.Incident", on_delete=models.CASCADE, null=True, related_name="+")
    resource = models.ForeignKey("catalog.Resource", on_delete=models.CASCADE, null=True, related_name="+")
    author = models.CharField(max_length=150)
    principal = models.CharField(max_length=MAX_PRINCIPAL_CHARS)
    text = models.TextField()
    at = models.DateTimeField(default=timezone.now)
    edited_at = models.DateTimeField(null=True)

    class Meta:
        """Constraint: a comment is about one thing."""

        constraints = (
            models.CheckConstraint(
                condition=models.Q(change__isnull=False, incident=None, resource=None)
                | models.Q(change=None, incident__isnull=False, resource=None)
                | models.Q(change=None, incident=None, resource__isnull=False),
                name="comment_about_one_thing",
            ),
        )

    def __str__(self) -> str:
        """The public id of the comment."""
        return str(self.public_id)


class TicketLink(models.Model):
    """The words for tickets of a tracker, and where they lead (`linking.Ticket`). `environment`: the only one in whose
    texts they are links; null: all.
    """

    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, null=True, related_name="+")
    prefix = models.CharField(max_length=MAX_PREFIX_CHARS)
    url = models.CharField(max_length=MAX_URL_CHARS)

    class Meta:
        """Constraints: a prefix leads to one place in an environment, and to one in all."""

        constraints = (
            models.UniqueConstraint(fields=("environment", "prefix"), name="ticket_prefix_once"),
            models.UniqueConstraint(
                fields=("prefix",), condition=models.Q(environment=None), name="ticket_prefix_once_for_all"
            ),
        )

    def __str__(self) -> str:
        """What stands before a ticket's number."""
        return self.prefix
