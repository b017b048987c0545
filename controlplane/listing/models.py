"""The tables of saved views. Private to this app's services and selectors."""

import uuid

from django.db import models
from django.utils import timezone

from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.listing.frames import MAX_QUERY_CHARS

MAX_LIST_CHARS = 32  # the word of a list
MAX_NAME_CHARS = 60


class SavedView(models.Model):
    """The filters and the order of a list under a name. `query`: in the spelling of `Asked.query`.

    `environment`: null for a list that is of no environment. `owner`, `author`: the id and the name of then of whose
    view it is. `shared`: everybody who may read the environment is offered it.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, null=True, related_name="+")
    listed = models.CharField(max_length=MAX_LIST_CHARS)
    name = models.CharField(max_length=MAX_NAME_CHARS)
    query = models.CharField(max_length=MAX_QUERY_CHARS, blank=True, default="")
    owner = models.CharField(max_length=MAX_PRINCIPAL_CHARS)
    author = models.CharField(max_length=150)
    shared = models.BooleanField(default=False)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Constraints: nobody has two views of a list with one name; what is of no environment is not shared."""

        constraints = (
            models.UniqueConstraint(fields=("environment", "listed", "owner", "name"), name="saved_view_name_once"),
            models.UniqueConstraint(
                fields=("listed", "owner", "name"),
                condition=models.Q(environment=None),
                name="saved_view_name_once_anywhere",
            ),
            models.CheckConstraint(
                condition=models.Q(shared=False) | models.Q(environment__isnull=False),
                name="saved_view_shared_somewhere",
            ),
        )

    def __str__(self) -> str:
        """The name of the view."""
        return self.name


class DefaultView(models.Model):
    """The view with which a list opens for one person, where its address asks nothing."""

    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="defaults")
    environment = models.ForeignKey("catalog.Environment", on_delete=models.CASCADE, null=True, related_name="+")
    listed = models.CharField(max_length=MAX_LIST_CHARS)
    owner = models.CharField(max_length=MAX_PRINCIPAL_CHARS)

    class Meta:
        """Constraint: a list opens with one view at most."""

        constraints = (
            models.UniqueConstraint(fields=("environment", "listed", "owner"), name="default_view_once"),
            models.UniqueConstraint(
                fields=("listed", "owner"), condition=models.Q(environment=None), name="default_view_once_anywhere"
            ),
        )

    def __str__(self) -> str:
        """The word of the list, and the id of whose default it is."""
        return f"{self.listed} of {self.owner}"
