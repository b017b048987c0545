"""The doors at which somebody asks what a client has of a resource. Each is read into one form, so that what they say
can be compared. Pages and lists are read once each.
"""

import html
import re
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import grpc
from envoy.service.status.v3 import csds_pb2

from tests.support.console import Console
from tests.support.stack import Parley
from tests.support.xdsctl import Xdsctl
from xdscore.resource_types import by_url

_FETCH = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
_REST = ("version", "acked_version", "since")
_CELL = '<td data-label="{}">(.*?)</td>'
_SECONDS_CHARS = len("2006-01-02T15:04:05")
# A page says at most this much of what was told.
_SHOWN_CHARS = 500


class Row(NamedTuple):
    """What a client has of a name, as all doors but CSDS say it: the state, the revisions that it was sent and goes on
    with, the error's code, what was told or said, the versions of the two revisions, and since when it is so.
    """

    state: str
    revision: int | None
    runs: int | None
    code: str | None
    message: str | None
    version: str | None = None
    acked_version: str | None = None
    since: str | None = None


def shown_since(row: Row) -> str:
    """Since when it is so, as a page has it in its markup: to the second."""
    return (row.since or "")[:_SECONDS_CHARS]


class Shown(NamedTuple):
    """What a page shows of a row: the state, what the client has, since when, and the words beside it."""

    state: str
    runs: str
    since: str
    words: str

    def says(self, row: Row) -> bool:
        """Whether it says what the row does; pages say whole seconds."""
        runs = f"r{row.runs}" if row.runs else "nothing"
        same = (self.state, self.runs, self.since) == (row.state, runs, shown_since(row))
        return same and (row.message or "")[:_SHOWN_CHARS] in self.words


class Status(NamedTuple):
    """What CSDS says of a name at a client: the state in its own words, the version and the details."""

    state: str
    version: str
    details: str


class Doors:
    """Asks about clients by their node ids; None where a door lists no such row."""

    def __init__(self, parley: Parley, console: Console, xdsctl: Xdsctl) -> None:
        self._parley = parley
        self._console = console
        self._xdsctl = xdsctl
        self._ids: dict[str, str] = {}
        self.rest_by_client = cache(self._rest_by_client)
        self.rest_by_resource = cache(self._rest_by_resource)
        self.xdsctl_by_client = cache(self._xdsctl_by_client)
        self.xdsctl_by_resource = cache(self._xdsctl_by_resource)
        self.page_of_client = cache(self._page_of_client)
        self.own_page_of_client = cache(self._own_page_of_client)
        self.page_of_resource = cache(self._page_of_resource)
        self.csds = cache(self._csds)

    def id_of(self, client: str) -> str:
        """The id of a client; empty while it is not known."""
        if client not in self._ids:
            rows = self._parley.call("GET", "/clients?limit=200").body["results"]
            self._ids = {row["node_id"]: row["id"] for row in rows}
        return self._ids.get(client, "")

    def now(self, client: str) -> dict[tuple[str, str], Row]:
        """What REST says of a client at this moment, by type and name; nothing of a client that it does not know."""
        known = self.id_of(client)
        rows = self._parley.call("GET", f"/clients/{known}/resources?limit=500").body["results"] if known else ()
        return {(row["type"], row["name"]): _row(row) for row in rows}

    def _rest_by_client(self, client: str) -> dict[tuple[str, str], Row]:
        return self.now(client)

    def _rest_by_resource(self, environment: str, word: str, name: str) -> dict[str, Row]:
        path = f"/environments/{environment}/resources/{word}/{quote(name, safe='')}/clients?limit=500"
        return {row["node_id"]: _row(row) for row in self._parley.call("GET", path).body["results"]}

    def _xdsctl_by_client(self, environment: str, client: str) -> dict[tuple[str, str], Row]:
        rows = self._xdsctl("-e", environment, "get", "resources", "--client", client, "-o", "json").data
        return {(row["type"], row["name"]): _row(row) for row in rows}

    def _xdsctl_by_resource(self, environment: str, word: str, name: str) -> dict[str, Row]:
        rows = self._xdsctl("-e", environment, "get", "clients", "--of", f"{word}/{name}", "-o", "json").data
        return {row["node_id"]: _row(row) for row in rows}

    def _page_of_client(self, client: str) -> dict[tuple[str, str], Shown]:
        shown = {}
        for row in self._rows(f"/clients/{self.id_of(client)}/resources"):
            word, name = re.findall(r'<span class="quiet">(\w+)</span> <a [^>]*>(.*?)</a>', row)[0]
            shown[word, name] = _shown(row)
        return shown

    def _own_page_of_client(self, client: str) -> dict[tuple[str, str], Shown]:
        """What the page of a client itself shows, once above where it needs attention and once below its type."""
        shown: dict[tuple[str, str], Shown] = {}
        for row in self._rows(f"/clients/{self.id_of(client)}"):
            [link] = re.findall(r'<a class="foreign" href="([^"]*)"', row)
            asked = parse_qs(urlsplit(html.unescape(link)).query)
            key = (asked["type"][0], asked["name"][0])
            assert shown.setdefault(key, _shown(row))[:2] == _shown(row)[:2]
        return shown

    def _page_of_resource(self, environment: str, word: str, name: str) -> dict[str, Shown]:
        """What the page of a resource shows by node id; nothing where the resource was never written."""
        found = {}
        for row in self._rows(f"/e/{environment}/resource?type={word}&name={name}&tab=clients"):
            [node] = re.findall(r'<a class="foreign" href="/clients/[^>]*>(.*?)</a>', row)
            found[node] = _shown(row)
        return found

    def _rows(self, path: str) -> list[str]:
        page = self._console.open(path).decode()
        return [row for row in re.findall(r'<tr>\s*<th scope="row">.*?</tr>', page, re.DOTALL) if "State" in row]

    def _csds(self) -> dict[tuple[str, str, str], Status]:
        """By node id, type and name, of every connected client."""
        request = csds_pb2.ClientStatusRequest(exclude_resource_contents=True)
        with grpc.insecure_channel(f"127.0.0.1:{self._parley.ads_port}") as channel:
            ask: Any = channel.unary_unary(_FETCH, None, None)
            authorization = [("authorization", f"Bearer {self._parley.token}")]
            data = ask(request.SerializeToString(), metadata=authorization, timeout=10)
        return {
            (client.node.id, by_url[each.type_url].word, each.name): Status(
                csds_pb2.ConfigStatus.Name(each.config_status),
                each.version_info,
                each.error_state.details,
            )
            for client in csds_pb2.ClientStatusResponse.FromString(data).config
            for each in client.generic_xds_configs
        }


def _row(row: Any) -> Row:
    return Row(
        row["state"], row["revision"], row["acked_revision"], row["code"], row["message"], *(row[key] for key in _REST)
    )


def _shown(row: str) -> Shown:
    [state] = re.findall(_CELL.format("State"), row, re.DOTALL)
    [runs] = re.findall(_CELL.format("Has"), row, re.DOTALL)
    cells = re.findall(_CELL.format("Since"), row, re.DOTALL)
    since = next(iter(re.findall(r'<time datetime="(.*?)"', "".join(cells))), "")
    return Shown(_text(state), _text(runs), since[:_SECONDS_CHARS], _text(row))


def _text(shown: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", shown)).split())
