"""Who was sent what and took it, and who asks for it, read once for a run: many incidents may be about one resource."""

from collections.abc import Mapping
from datetime import datetime

from controlplane.clients.content_reach import Content, ContentReach, content_reach
from controlplane.clients.selectors import clients_asking
from controlplane.incidents.models import Incident
from controlplane.incidents.verdict import ClientKey

_Key = tuple[str, str, tuple[Content, ...]]


def contents_of(incident: Incident) -> tuple[Content, ...]:
    """The (name, version) of what the incident's culprit is refused for or, where none is known, of its suspects."""
    if incident.name:
        return ((incident.name, incident.version),)
    return tuple((str(name), str(version)) for name, version in incident.suspects)


class Reach:
    """The clients that were sent, acknowledged, or ask for, what incidents are about. Each answer is read once and
    kept, because many incidents may be about one resource.
    """

    def __init__(self) -> None:
        self._reached: dict[tuple[_Key, datetime], ContentReach] = {}
        self._asking: dict[_Key, Mapping[str, ClientKey]] = {}

    def sent(self, incident: Incident) -> Mapping[str, ClientKey]:
        """The clients, by id, that were sent the refused content (or one of the suspects) since it was written."""
        return self._of(incident).sent

    def acknowledged(self, incident: Incident) -> Mapping[str, ClientKey]:
        """The clients, by id, that acknowledged the refused content (or one of the suspects); some may refuse it
        since.
        """
        return self._of(incident).acknowledged

    def asking(self, incident: Incident) -> Mapping[str, ClientKey]:
        """The connected clients, by id, that ask for the incident's resource, or one of its suspects."""
        environment, word, contents = key = _key(incident)
        if key not in self._asking:
            names = {name for name, _ in contents}
            self._asking[key] = clients_asking(environment_key=environment, word=word, names=names)
        return self._asking[key]

    def _of(self, incident: Incident) -> ContentReach:
        environment, word, contents = _key(incident)
        key = ((environment, word, contents), incident.since)
        if key not in self._reached:
            self._reached[key] = content_reach(
                environment_key=environment, word=word, contents=contents, since=incident.since
            )
        return self._reached[key]


def _key(incident: Incident) -> _Key:
    return incident.environment.key, incident.type, contents_of(incident)
