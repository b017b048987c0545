"""The client's end of one stream: requests as bytes in, responses as bytes out, and the responses in words.

Between the two is what ADS has between its sockets: the decoder, a session, the types it does not know, the encoder.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc import code_pb2, error_details_pb2, status_pb2

from adsserver.engine.events import Fact, Rejected, Variant, Violated
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from adsserver.ports import Contents
from adsserver.servicers.unsupported import UnsupportedTypes
from adsserver.wire.discovery import Decoder, Encoder, NodeFacts, UnknownTypeRequest
from tests.golden.whole.case import Step, key_of
from xdscore.client_kinds import kind_of
from xdscore.environment_choice import ClientFacts, EnvironmentChoice, choose_environment
from xdscore.resource_types import by_url, by_word
from xdscore.schema.types_registry import schema

IDENTIFIER = "parley"
Line = dict[str, Any]
"""A response, or what the server notes of an answer to one."""

_MOST_RESPONSES = 50  # of one step: more is a loop


@dataclass(slots=True)
class _Half:
    """What the client knows of one type: names it asks for, the last nonce, the last version it took (SotW), by name
    the content and version that it has, and the last response where it has not answered that.
    """

    names: list[str] = field(default_factory=list)
    nonce: str = ""
    version: str = ""
    held: dict[str, tuple[Any, str]] = field(default_factory=dict)
    unanswered: Line | None = None


def encoder_of(contents: Contents) -> Encoder:
    """The encoder that all streams of one process share."""
    return Encoder(contents, IDENTIFIER)


class Client:
    """One client of a case, on one stream of one variant at a time."""

    def __init__(
        self,
        variant: Variant,
        node: Mapping[str, Any],
        settings: EngineSettings,
        encoder: Encoder,
        choices: Sequence[EnvironmentChoice],
    ) -> None:
        self._variant = variant
        self._identity = node.get("identity", "")
        self._node = {key: value for key, value in node.items() if key != "identity"}
        self._settings = settings
        self._encoder = encoder
        self._choices = choices
        self._halves: dict[str, _Half] = {}
        self._session: Session | None = None
        self._decoder = Decoder(settings.limits)
        self._unsupported = UnsupportedTypes(settings.limits)
        self._facts: NodeFacts | None = None
        self.environment = choose_environment(self._client_facts(self._read_node()), choices)

    def disconnect(self) -> None:
        """The stream ends, and all that was said on it (A4)."""
        self._session = None

    def offer(self, publication: Publication, now: float) -> None:
        """The environment was published anew."""
        if self._session is not None:
            self._session.offer(publication, now)

    def behave(self, step: Step, publication: Publication | None, now: float) -> list[Line]:
        """Do what the step says, and answer what is sent; all that was sent and noted."""
        lines: list[Line] = []
        if step.reconnect:
            for url in list(self._halves):
                half = self._halves[url]
                half.nonce = ""
                lines += self._request(url, publication, now, first=True)
                lines += self._drain(step, now)
        for word, names in step.ask.items():
            url = _url(word)
            first = url not in self._halves
            half = self._halves.setdefault(url, _Half())
            half.names += [name for name in names if name not in half.names]
            lines += self._request(url, publication, now, subscribe=names, first=first, nonce=step.nonce)
            lines += self._drain(step, now)
        for word, names in step.leave.items():
            half = self._halves[_url(word)]
            half.names = [name for name in half.names if name not in names]
            half.held = {name: copy for name, copy in half.held.items() if name not in names}
            lines += self._request(_url(word), publication, now, unsubscribe=names)
            lines += self._drain(step, now)
        for word in step.answer:
            lines += self._acknowledge(_url(word), now)
        for word in step.repeat if self._variant is Variant.SOTW else ():
            lines += self._request(_url(word), publication, now)
            lines += self._drain(step, now)
        return lines + self._drain(step, now)

    def _request(
        self,
        url: str,
        publication: Publication | None,
        now: float,
        *,
        subscribe: Sequence[str] = (),
        unsubscribe: Sequence[str] = (),
        first: bool = False,
        nonce: str | None = None,
        nack: str | None = None,
    ) -> list[Line]:
        """One request of this type; what the server notes of it."""
        half = self._halves[url]
        error = status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message=nack) if nack is not None else None
        request: Any
        if self._variant is Variant.SOTW:
            request = discovery_pb2.DiscoveryRequest(
                type_url=url,
                version_info=half.version,
                resource_names=half.names,
                response_nonce=half.nonce if nonce is None else nonce,
                error_detail=error,
            )
        else:
            names = half.names if first else subscribe
            held = {name: version for name, (_, version) in half.held.items()} if first else {}
            # A change of the subscription says nothing of a response, unless the case wants it to.
            mere_change = nonce is None and bool(subscribe or unsubscribe or first)
            request = discovery_pb2.DeltaDiscoveryRequest(
                type_url=url,
                resource_names_subscribe=names,
                resource_names_unsubscribe=unsubscribe,
                initial_resource_versions=held,
                response_nonce="" if mere_change else half.nonce if nonce is None else nonce,
                error_detail=error,
            )
        if self._session is None:
            ParseDict(self._node, request.node)
        return list(self._receive(request.SerializeToString(), publication, now))

    def _receive(self, data: bytes, publication: Publication | None, now: float) -> Iterator[Line]:
        incoming = self._decoder.decode(data, self._variant, None)
        if self._session is None:
            assert incoming.node is not None
            self._facts = incoming.node
            facts = self._client_facts(incoming.node)
            self._session = Session(self._variant, facts, self._settings, publication)
            self._unsupported = UnsupportedTypes(self._settings.limits)
        if not isinstance(incoming.request, UnknownTypeRequest):
            yield from filter(None, map(_fact_line, self._session.receive(incoming.request, now)))
        elif self._variant is Variant.SOTW:
            self._unsupported.receive_sotw(incoming.request)
        else:
            self._unsupported.receive_delta(incoming.request)

    def _drain(self, step: Step, now: float) -> list[Line]:
        """Take all that is sent now, and answer it."""
        lines: list[Line] = []
        while (data := self._next(now)) is not None:
            assert len(lines) < _MOST_RESPONSES
            response, line = self._read(data)
            lines.append(line)
            url = response.type_url
            half = self._halves[url]
            half.nonce = response.nonce
            word = by_url[url].word if url in by_url else url
            half.unanswered = line
            if word in step.silent:
                continue
            refusals = {key_of(name): text for name, text in step.refuse.items()}
            if refused := [name for name in _new_in(line, half, step.holding) if (word, name) in refusals]:
                half.unanswered = None
                lines += self._request(url, None, now, nack=refusals[word, refused[0]])
            else:
                lines += self._acknowledge(url, now)
        return lines

    def _acknowledge(self, url: str, now: float) -> list[Line]:
        half = self._halves[url]
        line, half.unanswered = half.unanswered, None
        assert line is not None
        for each in line.get("resources", ()):
            half.held[each["name"]] = each["content"], each.get("version", "")
        for name in line.get("removed", ()):
            half.held.pop(name, None)
        half.version = line["version"]
        return self._request(url, None, now)

    def _next(self, now: float) -> bytes | None:
        if self._session is None or self._facts is None:
            return None
        if (answer := self._unsupported.take()) is not None:
            return self._encoder.encode_errors(
                self._variant, answer.type_url, answer.nonce, answer.version, answer.errors
            )
        response = self._session.compose(now)
        if response is None:
            return None
        return self._encoder.encode(self._variant, response, wrapped=self._facts.takes_wrappers)

    def _read(self, data: bytes) -> tuple[Any, Line]:
        sotw = self._variant is Variant.SOTW
        response = (discovery_pb2.DiscoveryResponse if sotw else discovery_pb2.DeltaDiscoveryResponse).FromString(data)
        assert response.control_plane.identifier == IDENTIFIER  # A7
        line: Line = {
            "type_url": response.type_url,
            "version": response.version_info if sotw else response.system_version_info,
            "nonce": response.nonce,
        }
        # E2: an alias of nothing has no content.
        unresolved = [] if sotw else [each for each in response.resources if not each.HasField("resource")]
        resources = [_resource(each, response.type_url) for each in response.resources if each not in unresolved]
        if resources:
            line["resources"] = resources
        if unresolved:
            line["unresolved"] = {each.name: list(each.aliases) for each in unresolved}
        if not sotw and response.removed_resources:
            line["removed"] = list(response.removed_resources)
        if response.resource_errors:
            line["errors"] = list(map(_error, response.resource_errors))
        return response, line

    def _read_node(self) -> NodeFacts:
        request = discovery_pb2.DiscoveryRequest(type_url=by_word["cluster"].url)
        ParseDict(self._node, request.node)
        node = self._decoder.decode(request.SerializeToString(), Variant.SOTW, None).node
        assert node is not None
        return node

    def _client_facts(self, node: NodeFacts) -> ClientFacts:
        kind = kind_of(node.user_agent, node.user_agent_version)
        return ClientFacts(self._identity, node.id, node.cluster, node.metadata, kind)


def _url(word: str) -> str:
    return by_word[word].url if word in by_word else word


def _new_in(line: Line, half: _Half, holding: str) -> list[str]:
    """Names of which the response holds other content than the client has, with this text in it; of a response without
    resources, the names of its errors.
    """
    if "resources" not in line:
        return [each["name"] for each in line.get("errors", ())]
    known = {name: content for name, (content, _) in half.held.items()}
    new = (each for each in line["resources"] if known.get(each["name"]) != each["content"])
    return [each["name"] for each in new if holding in json.dumps(each["content"])]


def _resource(sent: Any, type_url: str) -> Line:
    """A resource as it was sent: an Any, an Any of a Resource (A9), or a Resource (delta)."""
    if isinstance(sent, discovery_pb2.Resource):
        return {"name": sent.name, "version": sent.version, "content": _content(sent.resource, type_url)}
    wrapper = discovery_pb2.Resource()
    if sent.Unpack(wrapper):
        return {"wrapped": True, **_resource(wrapper, type_url)}
    content = _content(sent, type_url)
    return {"name": content[by_url[type_url].name_field], "content": content}


def _content(sent: Any, type_url: str) -> Line:
    content: Line = MessageToDict(sent, preserving_proto_field_name=True, descriptor_pool=schema().pool)
    assert content.pop("@type") == type_url  # D7
    return content


def _error(sent: Any) -> Line:
    info = error_details_pb2.ErrorInfo()
    (detail,) = sent.error_detail.details
    assert detail.Unpack(info)
    return {
        "name": sent.resource_name.name,
        "code": f"{sent.error_detail.code} {code_pb2.Code.Name(sent.error_detail.code)}, {info.reason}",
        "text": sent.error_detail.message,
    }


def _fact_line(fact: Fact) -> Line | None:
    match fact:
        case Rejected(nonce=nonce, suspects=suspects, kept=kept, healing=healing):
            told: Line = {"nack of": nonce, "blames": [each.name for each in suspects]}
            if kept:
                told["goes on with"] = [f"{each.name} {each.content.version}" for each in kept]
            return {**told, "healed": True} if healing else told
        case Violated(rule=rule, detail=detail):
            return {"violates": rule, "detail": detail}
        case _:
            return None
