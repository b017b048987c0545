"""What `make check` counts as ways through a function."""

from pathlib import Path

import pytest

from scripts import complexity

EVERY = """
def f(a, b):
    for x in [y for y in a if y if b]:
        if x and a and b or x:
            return 1 if a else 2
    def g():
        while a:
            pass
"""


def test_functions__every_kind_of_branch__counts_also_within_an_inner_function() -> None:
    found = list(complexity.functions(EVERY))

    # for, comprehension with two conditions, if, and twice, or, conditional expression, while
    assert found == [("f", 2, 1 + 1 + 3 + 1 + 2 + 1 + 1 + 1), ("g", 6, 2)]


@pytest.mark.parametrize(("ways", "status"), [(19, 0), (20, 1)])
def test_main__function_at_the_bound_and_above__is_named_above(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ways: int, status: int
) -> None:
    (tmp_path / "m.py").write_text("def f(a):\n" + "    if a: pass\n" * (ways - 1))

    assert complexity.main([str(tmp_path)]) == status
    assert ("m.py:1: f has 20 ways" in capsys.readouterr().err) is bool(status)
