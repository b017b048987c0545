"""How a request over HTTP becomes a poll, and its answer a body. Made once per process by `server`."""

import asyncio
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import grpc

from adsserver.engine.poll import Answer
from adsserver.identity.identification import Caller, Identify, Peer, UnauthenticatedError, UndecidedError
from adsserver.limits.budgets import Budget, RefusedStreamError
from adsserver.rest.exchange import Exchanges, GoneError, Head
from adsserver.rest.problems import Headers, Problem, problem_of
from adsserver.servicers.ends import End, StreamEndError
from adsserver.servicers.hub import Pace
from adsserver.servicers.polls import Asked, Given, Polls
from adsserver.servicers.shared import Shared
from adsserver.wire.discovery import Incoming, MalformedRequestError, OversizedRequestError
from adsserver.wire.polling import PATHS, UNSPEAKABLE, JsonEncoder, JsonTexts, PollReader, read_poll
from xdscore.callers import caller_key
from xdscore.decision import Withheld
from xdscore.errors import ResourceError, error_of
from xdscore.resource_types import ResourceType

_JSON: Final[Headers] = (("Content-Type", "application/json"),)
# RFC 7240, section 4.3.
_WAIT: Final = re.compile(r'(?:^|[,;])\s*wait\s*=\s*"?(\d{1,5})"?\s*(?=$|[,;])', re.ASCII)
_LARGE_BODY_BYTES: Final = 256 * 1024
_WHY_NOT_JSON: Final = "JSON cannot say what it holds; clients that ask by gRPC are served"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP, and what is to be done once the client surely has it."""

    status: HTTPStatus
    body: bytes
    headers: Headers
    given: Given


@dataclass(slots=True)
class Answering:
    """Answers requests. `identify`: who calls, by the same rules as over gRPC."""

    shared: Shared
    polls: Polls
    identify: Identify
    texts: JsonTexts
    encoder: JsonEncoder
    reader: PollReader

    async def reply(self, exchanges: Exchanges, head: Head, peer: Peer, where: str) -> Reply:
        """The answer to the request with this head, whose body is read here. `where`: the address of the peer. Raises
        Problem, and GoneError when the peer left.
        """
        kind = self._kind(head)
        caller = await self._caller(peer, where)
        try:
            budget = await self.shared.budgets.admit_beside(caller_key(caller.identity, where))
        except RefusedStreamError as error:
            raise problem_of(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)), ends=True) from error
        try:
            await budget.turn()
            body = await exchanges.body()
            budget.received(len(body))
            given = await self._given(exchanges, body, Poll(kind, caller, where, budget, waits_s(head)))
            return await self._spoken(given, budget)
        finally:
            self.shared.budgets.leave_beside(budget)

    def _kind(self, head: Head) -> ResourceType:
        kind = PATHS.get(head.path)
        if kind is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"Nothing is served here. Polls go to {', '.join(PATHS)}.", ends=True)
        if head.method != "POST":
            text = "A poll is a POST with a DiscoveryRequest in JSON."
            raise Problem(HTTPStatus.METHOD_NOT_ALLOWED, text, (("Allow", "POST"),), ends=True)
        if head.values(b"origin"):
            # A page in somebody's browser could reach what is protected by its address alone (DNS rebinding).
            raise Problem(HTTPStatus.FORBIDDEN, "This port is for data planes; browsers are not served.", ends=True)
        types = head.values(b"content-type")
        if len(types) != 1 or types[0].partition(";")[0].strip().lower() != "application/json":
            text = "The body must be JSON: send Content-Type: application/json."
            raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text, ends=True)
        return kind

    async def _caller(self, peer: Peer, where: str) -> Caller:
        try:
            return await self.identify(peer)
        except UnauthenticatedError as error:
            end = End(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except UndecidedError as error:
            end = End(grpc.StatusCode.UNAVAILABLE, str(error))
        budgets = self.shared.budgets
        try:
            budget = await budgets.admit_beside(caller_key("", where))
        except RefusedStreamError as error:
            raise problem_of(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)), ends=True) from error
        try:
            # Whoever tries again and again has to wait, as over gRPC.
            budget.opened()
            if not budgets.short_of_memory():
                await budget.refusal_turn()
        finally:
            budgets.leave_beside(budget)
        raise problem_of(end, ends=True)

    async def _given(self, exchanges: Exchanges, body: bytes, poll: "Poll") -> Given:
        try:
            incoming = await self._read(body, poll)
        except MalformedRequestError as error:
            raise Problem(HTTPStatus.BAD_REQUEST, str(error)) from error
        except OversizedRequestError as error:
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error)) from error
        asked = Asked(poll.caller, poll.where, incoming, poll.budget, poll.wait_s)
        try:
            if not poll.wait_s:
                return await self.polls.answer(asked)
            return await _while_there(exchanges, self.polls, asked)
        except StreamEndError as error:
            raise problem_of(error.end) from error

    async def _read(self, body: bytes, poll: "Poll") -> Incoming:
        if len(body) < _LARGE_BODY_BYTES:
            with poll.budget.of_request():
                return self.reader.read(body, poll.kind)
        async with poll.budget.parsing:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.shared.parsers, read_poll, body, poll.kind, self.shared.limits)

    async def _spoken(self, given: Given, budget: Budget) -> Reply:
        answer = given.answer
        if answer.unchanged:
            return Reply(HTTPStatus.NOT_MODIFIED, b"", (), given)
        texts, untold = await self._texts(answer, budget, given.polled.begun.info.environment)
        given.unspoken({error.name: error for error in untold})
        with budget:
            body = self.encoder.encode(answer, texts, untold)
        self.shared.metrics.bytes_sent.inc(len(body))
        return Reply(HTTPStatus.OK, body, _JSON, given)

    async def _texts(self, answer: Answer, budget: Budget, environment: str) -> tuple[list[bytes], list[ResourceError]]:
        """The text of each resource of the answer; and, of those that JSON cannot say, why they are missing."""
        texts: list[bytes] = []
        untold: list[ResourceError] = []
        pace = Pace(self.shared.limits.fan_out_slice_ms / 1000)
        loop = asyncio.get_running_loop()
        for member in answer.resources:
            text = self.texts.known(member.content)
            if text is None:
                try:
                    data = self.texts.any_bytes(member.content)
                    if self.texts.is_large(member.content):
                        text = await loop.run_in_executor(self.shared.parsers, self.texts.text, data)
                    else:
                        with budget:
                            text = self.texts.text(data)
                except UNSPEAKABLE:
                    url = self.shared.settings.public_url
                    error = error_of(
                        Withheld(_WHY_NOT_JSON),
                        kind=answer.kind,
                        name=member.name,
                        environment=environment,
                        public_url=url,
                    )
                    untold += [error] if error is not None else []
                    continue
                self.texts.keep(answer.kind, member.content, text)
                await pace.breathe()
            texts.append(text)
        return texts, untold


@dataclass(frozen=True, slots=True)
class Poll:
    """What is known of a poll before its body is read."""

    kind: ResourceType
    caller: Caller
    where: str
    budget: Budget
    wait_s: float


async def _while_there(exchanges: Exchanges, polls: Polls, asked: Asked) -> Given:
    """The answer to a poll that waits, as long as its client does. Raises GoneError when it left."""
    work = asyncio.ensure_future(polls.answer(asked))
    left = asyncio.ensure_future(exchanges.left())
    try:
        await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise GoneError
        return work.result()
    finally:
        for task in (work, left):
            task.cancel()
        await asyncio.gather(work, left, return_exceptions=True)


def waits_s(head: Head) -> float:
    """The seconds that a client waits for something new (`Prefer: wait=25`); 0 where it does not say."""
    found = _WAIT.search(",".join(head.values(b"prefer")))
    return float(found.group(1)) if found else 0.0
