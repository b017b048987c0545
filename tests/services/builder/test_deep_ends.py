"""Whatever deep validation starts is gone when its time is over."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from controlplane.builder.deep.envoy import Envoy, EnvoyJudge
from controlplane.builder.stages.inspect import EnvoyVerdict
from tests.support.bubblewrap import needed
from tests.support.waiting import eventually

pytestmark = needed


def left(program: Path) -> list[int]:
    """The processes that have this program open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(each.readlink() == program for each in (process / "fd").iterdir()):
                found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]


def test_envoy__time_is_over_while_its_walls_are_built__nothing_of_it_stays(tmp_path: Path) -> None:
    # It writes for ever, so that only the end of its time ends it.
    program = Path(shutil.copy("/usr/bin/yes", tmp_path / "envoy"))

    for number in range(300):
        judge = EnvoyJudge(Envoy(program, "endless"), budget_s=0.001 + number % 100 / 10_000, clock=time.monotonic)
        assert judge(b"").verdict is EnvoyVerdict.UNDECIDED

    eventually(lambda: left(program), lambda pids: not pids, within_s=2)
