"""What a client stands on, name by name: a reference to the shared view it was told, and what differs from it.

`behind` holds the differences (decisions A6): names that were added but not answered, that did not fit
into one response, whose removal has to wait, or of which the client holds something else. Both are empty for a stream
that was told nothing, and `behind` is for a stream at rest.
"""

from collections.abc import Callable, Iterable, Mapping

from adsserver.engine.client_view import ClientView
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import ABSENT, Absent, Told
from xdscore.xdstp import Glob


class Standing:
    """Of one type on one stream. `public_url`: where the links in error texts lead."""

    __slots__ = ("_public_url", "behind", "view")

    def __init__(self, public_url: str) -> None:
        self._public_url = public_url
        self.view: ClientView | Absent = ABSENT
        self.behind: dict[str, Told] = {}

    def told(self, name: str, subscription: Subscription) -> Told:
        """What the client was told of this name last."""
        if name in self.behind:
            return self.behind[name]
        if isinstance(self.view, Absent) or not subscription.covers(name):
            return ABSENT
        return self.view.shown(name, subscription, self._public_url)

    def members_of(self, globs: Iterable[Glob]) -> set[str]:
        """Members of these collections in the view that the client stands on."""
        return set() if isinstance(self.view, Absent) else self.view.members_of(globs)

    def stand_on_nothing(self, behind: Mapping[str, Told]) -> None:
        """From here on only `behind` is what the client was told."""
        self.view, self.behind = ABSENT, dict(behind)

    def arrive(self, view: ClientView, subscription: Subscription) -> set[str]:
        """Stand on `view` from here on, but for what the client was not told of it: the names are given back, and are
        kept with what it was told of them before.
        """
        names, behind = self.differing(view, subscription), self.behind
        if self.view is not view:
            behind.update((name, self.told(name, subscription)) for name in names.difference(behind))
            self.view = view
        return names

    def forget_unless(self, covers: Callable[[str], bool]) -> None:
        """Of names no longer asked for there is nothing to remember."""
        self.behind = {name: told for name, told in self.behind.items() if covers(name)}

    def differing(self, view: ClientView, subscription: Subscription) -> set[str]:
        """The names of this subscription of which `view` may show anything else than the client was told."""
        names = set(self.behind)
        if self.view is view:
            return names
        if subscription.wildcard:
            names |= view.step_from(self.view).names
        explicit, globs = subscription.names, subscription.globs
        if isinstance(self.view, Absent):
            return names | explicit | view.members_of(globs)
        step = view.step_from(self.view)
        if step.all_names:
            return names | explicit | view.members_of(globs) | self.view.members_of(globs)
        members = {name for name in step.names if subscription.in_collection(name)} if globs else set()
        # The first and the last member decide what is told of a collection itself.
        return names | (step.names & explicit) | members | {glob.name for glob in globs if members}
