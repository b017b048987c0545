"""Which responses were looked at, so that each is looked at once however many clients acknowledge it."""

from collections import deque

from adsserver.engine.events import NamedContent

# Resources of responses whose contents were reported; beyond it the oldest response is looked at again when
# acknowledged.
_MAX_REMEMBERED_MEMBERS = 100_000


class RememberedResponses:
    """Remembers the resource tuples whose acknowledged contents were reported, so that a thousand ACKs of one tuple are
    looked at once.

    It knows a tuple by its `id()`, and therefore holds it; how many it holds is bounded by their members.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[NamedContent, ...]] = {}
        self._order: deque[tuple[str, int]] = deque()
        self._members = 0

    def is_new(self, environment: str, resources: tuple[NamedContent, ...]) -> bool:
        """Whether the contents of this tuple were not reported for this environment yet; from now on they are taken for
        reported.
        """
        key = (environment, id(resources))
        if key in self._known:
            return False
        self._known[key] = resources
        self._order.append(key)
        self._members += len(resources)
        while self._members > _MAX_REMEMBERED_MEMBERS and len(self._order) > 1:
            self._members -= len(self._known.pop(self._order.popleft()))
        return True
