"""Spellings that Envoy takes, by xdsctl: warned of with file and line, refused with --strict; also without a server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Change
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from tests.api.test_by_xdsctl import xdsctl_as
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NO, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

SPELLED = """\
'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
name: pay
type: strict_dns
"""
NAMELESS = """\
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
    filter_chains:
    - filters:
      - name: echo
        typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}
"""


@pytest.fixture
def xdsctl(tmp_path: Path) -> Iterator[Xdsctl]:
    environment_default_ensure()
    with serving_web() as address:
        yield xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


@pytest.mark.parametrize(("text", "code", "line"), [(SPELLED, "XDS1031", 3), (NAMELESS, "XDS1063", 3)])
@pytest.mark.parametrize(
    "words", [("validate",), ("validate", "--offline"), ("apply",), ("changesets", "create", "--title", "t")]
)
def test_files__other_spellings__warned_of_in_their_lines_and_refused_when_strict(
    xdsctl: Xdsctl, tmp_path: Path, text: str, code: str, line: int, words: tuple[str, ...]
) -> None:
    file = tmp_path / "pay.yaml"
    file.write_text(text)

    strict = xdsctl(*words, "-f", str(file), "--strict")
    written = Change.objects.filter(kind="resources").count()
    lenient = xdsctl(*words, "-f", str(file))

    assert (strict.status, written, lenient.status) == (NO, 0, DONE), lenient.err
    said = [each for each in lenient.err.splitlines() if code in each]
    assert len(said) == 1
    assert f"pay.yaml:{line}" in said[0]
    assert code in strict.err


def test_change__its_warnings__are_shown_when_it_is_looked_at_later(xdsctl: Xdsctl, tmp_path: Path) -> None:
    file = tmp_path / "pay.yaml"
    file.write_text(SPELLED)
    xdsctl("apply", "-f", str(file))
    change = Change.objects.filter(kind="resources").get()

    shown = xdsctl("rollout", "status", str(change.public_id), "--timeout", "0s")

    assert "warning  XDS1031 'type'" in shown.out
