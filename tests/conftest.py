"""Gives each test process a home of its own and none of the operator's variables, then names the settings.

pytest-django loads the settings after this file, because pyproject.toml does not name them.

Generated tests try the same examples each time, so that the suite says the same of the same code; `make test-search`
looks for new ones.
"""

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Without a deadline: no test may depend on how quick the machine is.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", derandomize=False, deadline=None, print_blob=True)
hypothesis.settings.load_profile("repeatable")

_FOREIGN = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")

for _name in [name for name in os.environ if name.startswith("PARLEY_") or name in _FOREIGN]:
    del os.environ[_name]

# Short, and not pytest's own directory, which may be deeper than a socket's address can be long.
_HOME = tempfile.mkdtemp(prefix="parley-test-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

os.environ["PARLEY_HOME"] = _HOME
os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"

from controlplane.config.home import home_create  # noqa: E402
from controlplane.config.loading import load  # noqa: E402  the environment comes first

home_create(load(os.environ, directory=Path(_HOME)))

import django  # noqa: E402

# pytest-django sets Django up only where the settings were named before this file; they could not be.
django.setup()

# What xdist starts inherits this environment: with the settings named, pytest-django would load them, and this
# process's home, before that process reads this file. Two of them in one home hold each other's locks.
del os.environ["DJANGO_SETTINGS_MODULE"]


from django.contrib.auth.signals import user_logged_in  # noqa: E402
from django.http import HttpRequest  # noqa: E402
from django.test import TransactionTestCase  # noqa: E402

from controlplane.factors.proof import proof_note  # noqa: E402
from controlplane.http.static_files import StaticFilesMiddleware  # noqa: E402  its base reads the settings
from tests.support.emptying import database_empty  # noqa: E402
from tests.support.turns import pytest_xdist_make_scheduler  # noqa: E402

__all__ = ["pytest_xdist_make_scheduler"]


@pytest.fixture(scope="session", autouse=True)
def static_files_are_listed_once() -> Iterator[None]:
    """A process lists its static files when it starts. Each client of a test loads the middleware anew, as if it were
    another process, and would look at every file again: more than most requests cost.
    """
    listed: dict[str, object] = {}
    look = StaticFilesMiddleware.add_files_from_finders

    def look_once(middleware: StaticFilesMiddleware) -> None:
        if not listed:
            look(middleware)
            listed.update(middleware.files)
        middleware.files.update(listed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesMiddleware, "add_files_from_finders", look_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def databases_are_emptied_at_once() -> Iterator[None]:
    """After each test that commits, only what it wrote is deleted."""

    def empty(case: TransactionTestCase) -> None:
        for using in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]  # as its own does
            database_empty(using)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


@pytest.fixture(scope="session", autouse=True)
def who_is_signed_in_by_a_test_proved_it() -> Iterator[None]:
    """Django's test client signs people in without the page, which would note that they proved a moment ago who they
    are: acts that need it would ask them.
    """

    def prove(request: HttpRequest, **_other: object) -> None:
        if request.method is None:  # of no HTTP
            proof_note(request.session)

    user_logged_in.connect(prove)
    yield
    user_logged_in.disconnect(prove)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that collecting makes goes away before the end: to look through it again and again, now and during each
    test, takes a third of the time that collecting takes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not tried for want of a browser, of Node or of bubblewrap, and how to try it."""
    # Loads playwright, which nobody needs before the first test of a page.
    from tests.support.browser import MISSING  # noqa: PLC0415
    from tests.support.bubblewrap import MISSING as BUBBLEWRAP_MISSING  # noqa: PLC0415
    from tests.support.node_client import MISSING as NODE_MISSING  # noqa: PLC0415

    skipped = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    for missing in (MISSING, NODE_MISSING, BUBBLEWRAP_MISSING):
        count = sum(missing in reason for reason in skipped)
        if count:
            terminalreporter.write_line(f"{count} tests were skipped: {missing}")
