"""One name, several spellings: xdstp names that differ only in the order of their context parameters (H1).

Inside the engine every name is canonical. A session reads a request into that form and writes a response in the words
of the client.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from adsserver.engine.events import NamedContent, Request, Respond, SotwRequest
from xdscore.names import XDSTP, canonical


def read(request: Request) -> tuple[Request, dict[str, str]]:
    """The request with canonical names, and by canonical name the spelling of those that the client writes otherwise.

    The same object for all clients but those that do.
    """
    if isinstance(request, SotwRequest):
        spelled = _spellings(request.names)
        if not spelled:
            return request, spelled
        return replace(request, names=tuple(map(canonical, request.names))), spelled
    spelled = _spellings(request.subscribe)
    if not spelled and not _spellings((*request.unsubscribe, *request.initial_versions)):
        return request, spelled
    return (
        replace(
            request,
            subscribe=tuple(map(canonical, request.subscribe)),
            unsubscribe=tuple(map(canonical, request.unsubscribe)),
            initial_versions={canonical(name): version for name, version in request.initial_versions.items()},
        ),
        spelled,
    )


def written(response: Respond, spelled: Mapping[str, str]) -> Respond:
    """The response under the names that the client used; the same object where it used the canonical ones."""
    if not spelled:
        return response
    return replace(
        response,
        resources=tuple(NamedContent(spelled.get(m.name, m.name), m.content) for m in response.resources),
        errors=tuple(replace(error, name=spelled.get(error.name, error.name)) for error in response.errors),
        removed=tuple(spelled.get(name, name) for name in response.removed),
        unresolved=tuple(spelled.get(name, name) for name in response.unresolved),
    )


def read_response(response: Respond) -> Respond:
    """The response under canonical names, however it was written; the same object where it has no others."""
    if not _spellings((*(m.name for m in response.resources), *(e.name for e in response.errors), *response.removed)):
        return response
    return replace(
        response,
        resources=tuple(NamedContent(canonical(m.name), m.content) for m in response.resources),
        errors=tuple(replace(error, name=canonical(error.name)) for error in response.errors),
        removed=tuple(map(canonical, response.removed)),
        unresolved=tuple(map(canonical, response.unresolved)),
    )


def _spellings(names: Iterable[str]) -> dict[str, str]:
    return {plain: name for name in names if name.startswith(XDSTP) and (plain := canonical(name)) != name}
