"""Why a full state lacks names that were asked for, put together over several steps.

A full state cannot be split (D1), but thousands of names need not be looked at in one piece: everybody else waits
meanwhile.
"""

from adsserver.engine.client_view import ClientView, Explained
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import Subscription
from adsserver.engine.versions import mark
from xdscore.errors import ResourceError


class Explaining:
    """The resource errors that a full state of one subscription at one view holds, as far as they were looked up."""

    __slots__ = ("_ahead", "_errors", "_found", "_marks", "_settings", "subscription", "view")

    def __init__(self, view: ClientView, subscription: Subscription, settings: EngineSettings) -> None:
        self.view = view
        self.subscription = subscription
        self._settings = settings
        # The last one comes first.
        self._ahead = view.lacking(subscription)[::-1]
        self._errors: list[ResourceError] = []
        self._marks = 0
        self._found: Explained | None = None

    def go_on(self) -> Explained | None:
        """Look at some more names; what was found of all of them, None while there are others."""
        for _ in range(min(self._settings.limits.names_per_step, len(self._ahead))):
            name = self._ahead.pop()
            error = self.view.error(name, self._settings.public_url)
            if isinstance(error, ResourceError):
                self._errors.append(error)
                self._marks += mark(name, error)
        if not self._ahead and self._found is None:
            self._found = tuple(self._errors), self._marks
        return self._found
