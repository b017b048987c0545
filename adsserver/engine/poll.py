"""One polled subscription: a client that asks again and again for the same names of one type (protocol.md section L).

A poll is a request of a stream that the client tells in other words. It names no nonce; it names the version that it
has. So the version says what the client made of the answer before, and each answer is whole: everything that the client
was told of its names and did not refuse. Beneath is a session like any other, which decides everything else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adsserver.engine.events import Fact, Nack, NamedContent, Respond, SotwRequest
from adsserver.engine.session import Session
from adsserver.engine.versions import version_text
from xdscore.client_kinds import ClientFamily
from xdscore.environment_choice import ClientFacts
from xdscore.errors import ResourceError
from xdscore.resource_types import ResourceType

# L4: who surely read an answer so often and asks with the version that it had before does not take it. One time is no
# proof: it may have waited no longer than until just before, or another client may ask in the same name.
_READ: Final = 2
# Who names no version may also have begun to ask anew, as Envoy does for the endpoints of a cluster that changed.
_READ_WITHOUT_VERSION: Final = 3
# google.rpc.Code.UNKNOWN: Envoy says over REST that it refused something by asking once more, and never why.
WORDLESS: Final = Nack(2, "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a poll is answered with. `unchanged`: the client has all of it (HTTP 304). `nonce` is empty when no response
    waits for the client's word.
    """

    kind: ResourceType
    version: str
    nonce: str
    resources: tuple[NamedContent, ...]
    errors: tuple[ResourceError, ...]
    unchanged: bool = False

    def as_response(self) -> Respond:
        """The answer as a response that holds all of it, changed or not."""
        return Respond(self.kind, self.nonce, self.version, self.resources, self.errors)


class Poll:
    """What is known of one polled subscription. The shell calls `ask` with each poll that `follows`, then `compose`
    until there is nothing more, then `conclude` and `answer`.
    """

    __slots__ = (
        "_first",
        "_given",
        "_held",
        "_keeps_versions",
        "_open",
        "_read",
        "_sendings",
        "_view",
        "kind",
        "session",
    )

    def __init__(self, kind: ResourceType, client: ClientFacts, session: Session) -> None:
        """A subscription that begins, of a SotW `session` of this client."""
        self.kind = kind
        self.session = session
        # What the client said last that it has (None before the first poll), and what it was told that it has.
        self._held: str | None = None
        self._given = ""
        self._first = True
        # The responses of the last answer, if the client has not said what it makes of it.
        self._open: tuple[Respond, ...] = ()
        self._view: object = None
        # How often its answer was sent, and how often the client surely read it.
        self._sendings = 0
        self._read = 0
        # Who never says a version has not refused anything by saying none.
        self._keeps_versions = client.kind.family is ClientFamily.ENVOY

    def follows(self, request: SotwRequest) -> bool:
        """Whether this poll goes on from the ones before. If not, the client was started anew, or asked another server
        meanwhile: whatever is known of it is over, as when a stream ends (A4).
        """
        if self._held is None:
            return True
        if self._answers(request):
            return True
        if not self._open:
            return request.version in {self._held, self._given}
        if request.version != self._held:
            return False
        # What could not be given to it must not keep it from what is current now.
        return self._is_refusal(request) or self._view is self.session.view(self.kind)

    def ask(self, request: SotwRequest, now: float) -> tuple[Fact, ...]:
        """Take a poll in: first what it says of the answer before (L3), then what it asks for."""
        before, self._held = self._held, request.version
        self._first = before is None
        self._keeps_versions = self._keeps_versions or bool(request.version)
        if before is None:
            return self.session.receive(replace(request, nonce=""), now)
        if not self._open:
            # A word about an answer that was settled says nothing; what is asked for is what it was.
            return ()
        if self._answers(request):
            return self._settle(request, request.nack, now)
        return self._settle(request, WORDLESS, now) if self._is_refusal(request) else ()

    def compose(self, now: float) -> Respond | None:
        """The next response of the answer, which counts as sent; None when there is none, or the answer before is to be
        sent once more.
        """
        if self.repeats:
            return None
        response = self.session.compose(now)
        if response is not None:
            self._open = (*self._open, response)
            self._view = self.session.view(self.kind)
        return response

    @property
    def repeats(self) -> bool:
        """Whether the answer before is to be sent once more."""
        return self._sendings > 0

    def conclude(self, request: SotwRequest, now: float) -> tuple[Fact, ...]:
        """What follows once everything was composed: who comes with the very version that it would be given has all of
        it (L2), as after it was answered by another server.
        """
        if self._first and self._open and self._open[-1].version == request.version:
            return self._settle(request, None, now)
        return ()

    def answer(self) -> Answer:
        """What the client is sent: everything that it was told, or that nothing changed."""
        resources, errors = self.session.state(self.kind)
        if not self._open:
            unchanged, self._given = bool(self._held), self._held or version_text(0)
            return Answer(self.kind, self._given, "", resources, errors, unchanged=unchanged)
        self._sendings += 1
        # What is said once, as of a member that left a collection, is part of the answer and of no state.
        named = {member.name for member in resources} | {error.name for error in errors}
        once = tuple(error for each in self._open for error in each.errors if error.name not in named)
        last = self._open[-1]
        return Answer(self.kind, last.version, last.nonce, resources, (*errors, *once))

    def received(self, nonce: str) -> None:
        """Note that the client surely read the answer with this nonce, once more: it asked something since, by the same
        connection.
        """
        self._read += bool(self._open) and self._open[-1].nonce == nonce

    def _answers(self, request: SotwRequest) -> bool:
        """Whether the request says in so many words what the client makes of the answer that is open."""
        if not self._open:
            return False
        last = self._open[-1]
        if request.nonce:
            return request.nonce == last.nonce and (request.nack is not None or request.version == last.version)
        return request.nack is not None or request.version == last.version

    def _is_refusal(self, request: SotwRequest) -> bool:
        """Whether the client refuses the open answer without a word: it surely read it, and asks with the version that
        it had before (L4).
        """
        if request.version:
            return self._read >= _READ
        return self._keeps_versions and self._read >= _READ_WITHOUT_VERSION

    def _settle(self, request: SotwRequest, nack: Nack | None, now: float) -> tuple[Fact, ...]:
        answered: Sequence[Respond] = self._open
        self._open, self._sendings, self._read = (), 0, 0
        facts: list[Fact] = []
        for response in answered:
            facts += self.session.receive(replace(request, nonce=response.nonce, nack=nack), now)
        return tuple(facts)
