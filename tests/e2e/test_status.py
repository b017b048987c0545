"""What clients refuse is refused wherever somebody looks, as long as its incident is open (issue 22, "Done when" 4)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import Console
from tests.support.data_planes import DataPlanes, data_planes
from tests.support.manifests import cluster
from tests.support.stack import Parley
from tests.support.waiting import eventually
from tests.support.xdsctl import Xdsctl, xdsctl_for
from xdsclient import Variant
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.xdist_group("xdsctl"), pytest.mark.timeout(120)]

NAME = "refused-by-all"
LIST = "/environments/default/resources"
SAYS = "this build has no such extension"


@pytest.fixture
def parley(xdsctl_server: Parley) -> Iterator[Parley]:
    """Nothing is taken out of service by itself."""
    before = xdsctl_server.call("GET", "/environments/default").body["quarantine"]
    assert xdsctl_server.call("PATCH", "/environments/default", {"quarantine": "off"}).status == 200
    yield xdsctl_server
    xdsctl_server.call("PATCH", "/environments/default", {"quarantine": before})


@pytest.fixture
def planes(parley: Parley) -> Iterator[DataPlanes]:
    with data_planes(f"127.0.0.1:{parley.ads_port}") as started:
        yield started


class Everywhere:
    """Asks REST, the command line and the console how the resource stands."""

    def __init__(self, parley: Parley, folder: Path) -> None:
        self._parley = parley
        self._xdsctl: Xdsctl = xdsctl_for(parley, folder)
        self._console = Console(parley, (parley.home / "admin.password").read_text().strip())

    def told(self) -> dict[str, str]:
        """The status, by who tells it."""
        found = self._parley.call("GET", f"{LIST}?status=refused&name={NAME}").body["results"]
        document = self._parley.call("GET", f"{LIST}/cluster/{NAME}?status=true").body
        table = self._xdsctl("get", "cluster").out
        described = self._xdsctl("describe", "cluster", NAME).out
        alone = self._xdsctl("get", "cluster", NAME).err
        listed = self._page(f"/e/default/resources?status=refused&name={NAME}")
        headed = self._page(f"/e/default/resource?type=cluster&name={NAME}").partition(f"<h1>{NAME}</h1>")[2]
        return {
            "REST, list": ", ".join(row["status"] for row in found),
            "REST, document": document["status"],
            "xdsctl get": next(line.split()[3] for line in table.splitlines() if f" {NAME} " in line),
            "xdsctl get -o json": next(
                row["status"] for row in self._xdsctl("get", "cluster", "-o", "json").data if row["name"] == NAME
            ),
            "xdsctl get one": alone.partition(":")[0],
            "xdsctl describe": described.partition("Status:     ")[2].partition(":")[0],
            "console, list": _badge(listed.partition(f">{NAME}</a>")[2]),
            "console, page": _badge(headed),
        }

    def counted(self) -> tuple[dict[str, object] | None, str]:
        """Who refuses it, from REST; and the reason that xdsctl gives."""
        row = self._xdsctl("describe", "cluster", NAME, "-o", "json").data
        return row["refused"], row["reason"]

    def incidents(self, client: str) -> list[str]:
        """The resources of the open incidents of a client, by the command line."""
        found = self._xdsctl("incidents", "list", "--client", client, "--since", "1h", "--resource", f"cluster/{NAME}")
        return re.findall(r"cluster/\S+", found.out)

    def _page(self, path: str) -> str:
        return self._console.open(path).decode()


def _badge(page: str) -> str:
    """The first state that a page shows."""
    return page.partition('class="state state-')[2].partition("<span>")[2].partition("</span>")[0]


def test_resource__refused_by_both_clients__is_refused_everywhere_before_while_and_after_they_leave(
    parley: Parley, planes: DataPlanes, tmp_path: Path
) -> None:
    everywhere = Everywhere(parley, tmp_path)
    parley.apply_and_publish(cluster(NAME))
    clients = [
        planes.start(f"refuses-{variant.value}", CLUSTER, refuses={NAME: SAYS}, variant=variant) for variant in Variant
    ]
    published = everywhere.told()["REST, document"]

    for each in clients:
        each.ask(CLUSTER, NAME)
    (opened,) = eventually(
        lambda: parley.call("GET", f"/incidents?resource=cluster/{NAME}").body["results"], within_s=10
    )
    just_opened = everywhere.told()
    refused, reason = eventually(
        everywhere.counted, lambda found: found[0] is not None and found[0]["clients"] == 2, within_s=10
    )
    connected = everywhere.told()
    for each in clients:
        each.leave()
    eventually(lambda: _connected(parley), lambda count: count == 0, within_s=15)
    gone = everywhere.told()

    assert published == "published"
    for told in (just_opened, connected, gone):
        assert set(told.values()) == {"refused"}, told
    assert refused == {"clients": 2, "sent": 2, "incident": opened["id"]}
    assert reason == "2 of 2 clients refuse r1."
    assert everywhere.counted() == (refused, reason)
    assert everywhere.incidents("refuses-delta") == [f"cluster/{NAME}"]
    assert everywhere.incidents("somebody-else") == []

    parley.call("PATCH", f"/incidents/{opened['id']}", {"state": "resolved"})

    assert "refused" not in everywhere.told().values()


def _connected(parley: Parley) -> int:
    """How many of the clients that refuse are connected."""
    found = parley.call("GET", "/clients?connected=true").body["results"]
    return sum(each["node_id"].startswith("refuses-") for each in found)
