"""Which test process runs what, and when, in a run with `--dist loadgroup`."""

from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]  # the library is not typed


class BothEnds(LoadGroupScheduling):  # type: ignore[misc]  # the same
    """Large groups come first, as xdist orders them: they start processes and wait for them. One test process begins at
    the other end, where tests need nothing but a processor, so that what others wait is not lost.
    """

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 - xdist names it
        """Note that a test has ended, and forget its group when that has: xdist would count every test that ever ended
        each time that one ends.
        """
        test = self.registered_collections[node][item_index]
        group = self._split_scope(test)
        tests = self.assigned_work[node][group]
        tests[test] = True
        if all(tests.values()):
            del self.assigned_work[node][group]
        self._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        if node is self.nodes[-1]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BothEnds | None:
    """The order above, where groups are asked for; else xdist's own."""
    return BothEnds(config, log) if config.getoption("dist") == "loadgroup" else None
