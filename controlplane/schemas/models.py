"""The table of sets of descriptors. Private to this room."""

from django.db import models
from django.utils import timezone


class DescriptorSet(models.Model):
    """A set of descriptors that an operator added. `content`: the serialized set, compressed (xz); `digest`: the hash
    of the serialized set, by which processes see that it is another one.
    """

    name = models.CharField(max_length=63, unique=True)
    digest = models.CharField(max_length=64)
    content = models.BinaryField()
    files = models.PositiveIntegerField()
    messages = models.PositiveIntegerField()
    added_by = models.CharField(max_length=255)
    added_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        """The set's name."""
        return self.name
