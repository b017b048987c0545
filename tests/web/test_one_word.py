"""One word for one state: home, lists, details, editor, search, REST, xdsctl and metrics are asked of every situation,
with clients that are connected and after they left, and give one answer.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.catalog.services import environment_default_ensure
from controlplane.clients.models import Client as ClientRow
from controlplane.console.states import LOOKS, look_of_change, look_of_environment, look_of_resource
from controlplane.database.aliases import READER
from controlplane.ops.condition_metrics import ConditionCollector
from controlplane.status.changes import Outcome, Progress
from controlplane.status.environments import Headline
from controlplane.status.values import Status
from tests.support.web_thread import serving_web
from tests.support.xdsctl import Xdsctl
from tests.web.conftest import USERS, page
from tests.web.situations import NAME, SITUATIONS, Scene, Situation

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER]), pytest.mark.timeout(300)]

ROOT: Final = Path(__file__).resolve().parents[2]
NOTHING: Final = "(nothing)"
WELL_ENOUGH: Final = frozenset({Headline.PUBLISHED, Headline.EMPTY, Headline.WAITING, Headline.HELD})
WELL: Final = frozenset({*map(str, Progress)} - {Progress.SAVED.value, Progress.FAILED.value})

# Who reads how things stand, and by which columns below the answer is asked for. What does not ask the room `status`
# and says a word all the same would not be found here; what asks it is.
READERS: Final[Mapping[str, tuple[str, ...]]] = {
    "controlplane.api.schema": ("resource: REST, filter",),
    "controlplane.api.shapes.bulk": ("resource: REST, filter",),
    "controlplane.api.shapes.changes": ("change: REST",),
    "controlplane.api.shapes.environments": ("environment: REST, document",),
    "controlplane.api.shapes.resources": ("resource: REST, document",),
    "controlplane.api.views.change_list": ("change: REST, list",),
    "controlplane.api.views.changes": ("change: REST",),
    "controlplane.api.views.environments": ("environment: REST, document", "environment: REST, list"),
    "controlplane.api.views.resources": ("resource: REST, document", "resource: REST, list", "resource: REST, filter"),
    "controlplane.console.change_list": ("change: list",),
    "controlplane.console.changes": ("change: page",),
    "controlplane.console.drafts": ("resource: verdict",),
    "controlplane.console.environments": ("environment: list", "environment: page"),
    "controlplane.console.found": ("resource: search",),
    "controlplane.console.home": ("environment: home",),
    "controlplane.console.resources": ("resource: list", "resource: page", "resource: history", "resource: editor"),
    "controlplane.console.snapshots": ("environment: snapshots", "environment: snapshot"),
    "controlplane.console.states": (),  # how words look
    "controlplane.console.templatetags.console": (),  # how the sentence about an environment looks
    "controlplane.console.views": ("resource: code",),
    "controlplane.ops.condition_metrics": ("environment: metrics", "resource: metrics"),
}

# What xdsctl says it has from REST.
COLUMNS: Final = {column for columns in READERS.values() for column in columns} - {"resource: metrics"} | {
    *("resource: xdsctl get", "resource: xdsctl describe", "environment: xdsctl environments"),
}


class Everywhere:
    """Asks everybody who says how something stands. Each answer is the word, or `NOTHING`."""

    def __init__(self, browser: Client, xdsctl: Xdsctl, token: str) -> None:
        self._browser = browser
        self._xdsctl = xdsctl
        self._api = Client(headers={"Authorization": f"Bearer {token}"})

    def of_resource(self, word: str) -> dict[str, str]:
        """How `word/pay` stands."""
        subject, told = f"type={word}&name={NAME}", {}
        rows = self._get(f"environments/default/resources?{subject}")["results"]
        status = rows[0]["status"] if rows else "published"
        found = self._get(f"environments/default/resources?{subject}&status={status}")["results"]
        listed = page(self._browser, f"/e/default/resources?{subject}").partition(f">{NAME}</a>")[2]
        searched = page(self._browser, f"/search?q={NAME}").partition('id="resources"')[2].partition(f">{NAME}</a>")[2]
        table = self._xdsctl("get", word, "-q").out
        told["REST, list"] = rows[0]["status"] if rows else NOTHING
        told["REST, filter"] = found[0]["status"] if found else NOTHING
        told["list"], told["search"] = _badge(listed), _badge(searched)
        told["xdsctl get"] = next((row.split()[3] for row in table.splitlines() if f" {NAME} " in row), NOTHING)
        if not rows:
            return told
        document = self._get(f"environments/default/resources/{word}/{NAME}?status=true")
        told["REST, document"] = document["status"]
        described = self._xdsctl("describe", word, NAME).out.partition("Status:     ")[2]
        told["xdsctl describe"] = re.split(r"[:\s]", described, maxsplit=1)[0]
        told["page"] = _badge(page(self._browser, f"/e/default/resource?{subject}").partition("<h1>")[2])
        told["history"] = _badge(_newest(page(self._browser, f"/e/default/resource?{subject}&tab=history")))
        editor = f"/e/default/resource/edit?{subject}"
        told["editor"] = _badge(page(self._browser, editor).partition("<h1>")[2])
        text = json.dumps(self._get(f"environments/default/resources/{word}/{NAME}"))
        verdict = self._browser.post(editor, {"text": text, "action": "check"}, headers={"X-Parley-Part": "verdict"})
        if verdict.status_code == 200:  # an environment on hold takes no text at all
            told["verdict"] = _verdict(verdict.content.decode(), document["status"])
        codes = [page(self._browser, f"/codes/{code}") for code in ("XDS2002", "XDS2106")]
        told["code"] = next((_badge(each.partition(f">{NAME}</a>")[2]) for each in codes if f">{NAME}</a>" in each), "")
        return {who: said for who, said in told.items() if said}

    def of_environment(self) -> dict[str, str]:
        """How `default` stands."""
        (row,) = self._get("environments")["results"]
        table = self._xdsctl("environments", "-q").out
        told = {
            "REST, list": row["status"],
            "REST, document": self._get("environments/default")["status"],
            "xdsctl environments": next(each.split()[1] for each in table.splitlines() if each.startswith("default ")),
            "home": _badge(page(self._browser, "/").partition('href="/e/default">default</a>')[2]),
            "list": _badge(page(self._browser, "/environments").partition('href="/e/default">default</a>')[2]),
            "page": _badge(page(self._browser, "/e/default").partition("<h1>default</h1>")[2]),
            "metrics": _one(scraped("parley_environments_standing")),
        }
        if row["epoch"]:
            listed = page(self._browser, "/e/default/snapshots")
            told["snapshots"] = _badge(listed.partition("served now</span>")[2].partition("</span>")[2])
            one = page(self._browser, f"/e/default/snapshots/{row['epoch']}")
            told["snapshot"] = _badge(one.partition("served now</span>")[2].partition("</span>")[2])
        return told

    def of_change(self, change: str) -> dict[str, str]:
        """How a change stands; what is well is told as far as it has come, which is not the same everywhere."""
        shown, listed = page(self._browser, f"/changes/{change}"), page(self._browser, "/e/default/changes")
        [row] = [each for each in self._get("changes?environment=default")["results"] if each["id"] == change]
        told = {
            "REST": self._get(f"changes/{change}")["status"],
            "REST, list": row["status"],
            "page": _badge(shown.partition('id="progress"')[2]),
            "list": _badge(listed.partition(f'href="/changes/{change}"')[2]),
        }
        return {who: NOTHING if said in WELL else said for who, said in told.items()}

    def of_clients(self) -> dict[str, dict[str, str]]:
        """How each client stands, by node id."""
        table = self._xdsctl("ps", "--all", "-o", "wide").out
        listed = page(self._browser, "/e/default/clients")
        found = {}
        for row in self._get("clients")["results"]:
            node, word = row["node_id"], row["standing"].replace("_", " ")
            line = next(each for each in table.splitlines() if f" {node} " in each)
            found[node] = {
                "REST": word,
                "xdsctl ps": word if f" {word} " in line else line,
                "list": _badge(listed.partition(f">{node}</a>")[2]),
                "page": _badge(page(self._browser, f"/clients/{row['id']}").partition("<h1")[2]),
            }
        return found

    def title(self) -> str:
        """The headline of home."""
        return page(self._browser, "/").partition('<h1 id="how">')[2].partition("</h1>")[0]

    def _get(self, path: str) -> Any:
        answer = self._api.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.content
        return answer.json()


def scraped(metric: str) -> dict[str, float]:
    """By status, what a scraper reads."""
    families = {each.name: each for each in ConditionCollector().collect()}
    return {each.labels["status"]: each.value for each in families[metric].samples}


def _one(values: Mapping[str, float]) -> str:
    """The only status that there is any of."""
    return " ".join(word for word, value in values.items() if value)


def _words() -> dict[str, str]:
    """By what a badge says, the word."""
    words = {LOOKS[look_of_environment(each)].label: each.value for each in Headline}
    words |= {LOOKS[look_of_change(each)].label: each.value for each in (*Outcome, *Progress)}
    return words | {LOOKS[look_of_resource(each)].label: each.value for each in Status}


def _badge(shown: str) -> str:
    """The word of the first state that is shown."""
    label = shown.partition('class="state state-')[2].partition("<span>")[2].partition("</span>")[0]
    return _words().get(label, label) or NOTHING


def _newest(history: str) -> str:
    """The first step that is shown, behind its mark "current"."""
    return history.partition("<span>current</span>")[2].partition("</span>")[2]


def _verdict(shown: str, status: str) -> str:
    """The word that the editor has for what is stored already: it says "sound" of what nothing speaks against."""
    said = re.sub(r"<[^>]+>", "", shown.partition("<h2>")[2].partition("</h2>")[0]).strip()
    first = said.partition(";")[0].lower()
    return status if first == "sound" and status in {Status.PUBLISHED, Status.WAITING} else first


@pytest.fixture
def everywhere(settings: Any, tmp_path: Path) -> Iterator[Callable[[], Everywhere]]:
    """Once the situation is made, who is asked: a browser, and REST and xdsctl with a token, over HTTP."""
    environment_default_ensure()
    user = USERS.objects.create_superuser("admin", password=None)
    browser = Client()
    browser.force_login(user)
    _, token = api_token_create(name="test", scopes=ADMIN_SCOPES, actor=SYSTEM)
    with serving_web() as address:
        variables = {"XDSCTL_SERVER": address, "XDSCTL_TOKEN": token, "XDSCTL_CONFIG": str(tmp_path / "contexts.json")}
        yield lambda: Everywhere(browser, Xdsctl({**variables, "COLUMNS": "250"}), token)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.make.__name__)
def test_state__asked_everywhere_with_clients_and_after_they_left__is_one_word(
    everywhere: Callable[[], Everywhere], situation: Situation
) -> None:
    scene = Scene()
    situation.make(scene)
    asked = everywhere()

    _assert_one_answer(asked, situation, scene)
    counted, title = asked.of_clients(), asked.title()
    scene.leave()
    _assert_one_answer(asked, situation, scene)
    gone = asked.of_clients()

    assert {node: set(told.values()) for node, told in counted.items() if len(set(told.values())) > 1} == {}
    assert {word for told in gone.values() for word in told.values()} == {"gone"}
    assert counted.keys() == gone.keys() == set(ClientRow.objects.values_list("node_id", flat=True))
    troubled = {word for told in counted.values() for word in told.values()} & {"refusing", "silent", "denied"}
    assert ("nothing is refused" in title) is (situation.environment in WELL_ENOUGH and not troubled)


def _assert_one_answer(asked: Everywhere, situation: Situation, scene: Scene) -> None:
    expected = {
        "resource": situation.resource.value if situation.resource is not None else NOTHING,
        "environment": situation.environment.value,
        "change": situation.change.value if situation.change is not None else NOTHING,
    }
    told = {f"resource: {who}": said for who, said in asked.of_resource(situation.word).items()}
    told |= {f"environment: {who}": said for who, said in asked.of_environment().items()}
    if scene.change:
        told |= {f"change: {who}": said for who, said in asked.of_change(scene.change).items()}

    assert {who: said for who, said in told.items() if said != expected[who.partition(":")[0]]} == {}
    assert (
        scraped("parley_resources").get(expected["resource"], 0) == (situation.resource is not None) * situation.count
    )
    assert told.keys() <= COLUMNS
    if situation.resource is Status.WITHHELD:  # the pages of codes tell of it, too
        assert told.keys() == COLUMNS


def test_situations__each_word_there_is__stands_in_the_table() -> None:
    assert {each.resource for each in SITUATIONS} == {*Status, None}
    assert {each.environment for each in SITUATIONS} == set(Headline)
    assert {each.change for each in SITUATIONS} == {*Outcome, None}
    assert 2 * len(SITUATIONS) >= 30


def test_readers__whoever_asks_how_something_stands__is_a_column_of_the_table() -> None:
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for room in ("api", "console", "explain", "notify", "ops")
        for path in (ROOT / "controlplane" / room).rglob("*.py")
        if re.search(r"^from controlplane\.status\b", path.read_text("utf-8"), re.MULTILINE)
    }

    assert found == READERS.keys()
