"""The table of processes. Private to this room."""

from django.db import models


class ProcessState(models.Model):
    """A running process and what is wrong with it; one that was not seen for a while has ended (`watch`)."""

    id = models.CharField(max_length=32, primary_key=True)
    role = models.CharField(max_length=16)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    seen_at = models.DateTimeField()
    # `judging.Finding`, each as [check, text, stops].
    wrong = models.JSONField(default=list)

    def __str__(self) -> str:
        """The role, host and process id of the process."""
        return f"{self.role} {self.host}/{self.pid}"
