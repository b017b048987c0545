"""The examples of docs/reference/xdsclient.md, run as they stand against Parley's server, print what the page says."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.ads import running
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route

PAGE = Path(__file__).parents[3] / "docs/reference/xdsclient.md"
BLOCK = re.compile(r"```(python|text|json)\n(.*?)```", re.DOTALL)


async def test_examples__typed_in_one_after_the_other__print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    bootstrap = next(text for kind, text in blocks if kind == "json")
    monkeypatch.chdir(tmp_path)
    async with running() as run:
        run.publish(api_listener("pay", "pay"), route("pay", "pay"), eds_cluster("pay"), assignment("pay", 9000))
        (tmp_path / "bootstrap.json").write_text(bootstrap.replace("127.0.0.1:18000", run.address), encoding="utf-8")
        capsys.readouterr()

        names: dict[str, Any] = {}
        printed = [await _run(text, names, capsys) for kind, text in blocks if kind == "python"]

    assert len(printed) >= 5
    assert printed == [text for kind, text in blocks if kind == "text"]


async def _run(text: str, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """One block, as `python -m asyncio` runs it; what it printed."""
    code = compile(text, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(code, names)  # noqa: S307 - our own page
    if inspect.isawaitable(waiting):
        await waiting
    # The server in this process logs to the same stream.
    lines = capsys.readouterr().out.splitlines(keepends=True)
    return "".join(line for line in lines if not re.match(r"\S*\d{4}-\d{2}-\d{2}", line))
