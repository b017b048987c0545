"""A rolling upgrade from a version whose environments' default covered secrets: `migrate` writes a rule in its place
and says so, and clients keep the secret by replicas of both versions beside each other.
"""

from pathlib import Path

import pytest

from tests.support.data_planes import DataPlane, data_planes
from tests.support.manage import manage
from tests.support.manifests import tls_secret
from tests.support.site import stores
from tests.support.stack import ROOT, running_apart
from tests.support.version_before import NO_HISTORY, version_before
from tests.support.waiting import eventually
from xdscore.resource_types import SECRET

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300), pytest.mark.xdist_group("fleet")]

WRITES_RULES = "controlplane/access/migrations/0002_secret_rules.py"
KEY = (SECRET.word, "key")


def has(plane: DataPlane) -> None:
    """Whether it holds the secret and was told nothing against it."""
    eventually(lambda: plane.held()[KEY].state, lambda state: state == "acked", within_s=20)


def test_upgrade__environment_that_relied_on_its_default__keeps_serving_its_secret_and_migrate_says_by_which_rule(
    tmp_path: Path,
) -> None:
    before = version_before(tmp_path, migration=WRITES_RULES)
    if before is None:
        pytest.skip(NO_HISTORY)
    home = tmp_path / "home"
    with (
        stores() as (database, redis),
        running_apart(
            home, {"DATABASE_URL": database.url, "REDIS_URL": redis.url}, ads=2, workers=1, code=before
        ) as parley,
        data_planes(f"127.0.0.1:{parley.ads_ports[0]}") as first,
        data_planes(f"127.0.0.1:{parley.ads_ports[1]}") as second,
    ):

        def served(step: str) -> None:
            """To clients that were there, and to some that come now."""
            planes.extend(each.start(f"{step}-{number}", SECRET) for number, each in enumerate((first, second)))
            for plane in planes[-2:]:
                plane.ask(SECRET, "key")
            for plane in planes:
                has(plane)

        planes: list[DataPlane] = []
        parley.apply_and_publish(tls_secret("key", "first"))
        served("before")
        migrated = manage(home, "migrate", "--no-input", database=database.url)
        rules = parley.call("GET", "/environments/default/rules").body["results"]
        generation = parley.call("GET", "/environments/default").body["generation"]
        eventually(
            lambda: parley.call("GET", "/environments/default").body["built_generation"],
            lambda built: built == generation,
            within_s=20,
        )
        served("migrated")
        for names in (("worker0", "ads0"), ("web",), ("ads1",)):
            for name in names:
                parley.restart(name, code=ROOT)
            parley.apply_and_publish(tls_secret("key", "-".join(names)))
            served(names[0])

    assert migrated.returncode == 0, migrated.stderr
    assert [(rule["effect"], rule["types"], rule["pattern"]) for rule in rules] == [("allow", ["secret"], "*")]
    assert f"Environment 'default': wrote access rule {rules[0]['id']}" in migrated.stdout
