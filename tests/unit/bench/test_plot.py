"""The picture of a run is well-formed, holds every point, and nothing of a name can break it."""

from pathlib import Path
from xml.etree import ElementTree as ET

from bench.plot import chart
from bench.registry import Measurement
from bench.report import Result, write

SVG = "{http://www.w3.org/2000/svg}"
LINES = {"product, <SotW>": [(250.0, 0.1), (1_000.0, 0.4)], "floor & more": [(1_000.0, 0.3), (250.0, 0.0)]}


def test_chart__two_lines__has_their_points_in_order_and_their_names() -> None:
    picture = ET.fromstring(chart("latency", "clients", "seconds", LINES))  # noqa: S314 - our own text

    lines = [each.attrib["points"].split() for each in picture.iter(f"{SVG}polyline")]
    names = {each.text for each in picture.iter(f"{SVG}text")}
    assert [len(points) for points in lines] == [2, 2]
    assert all(float(first.split(",")[0]) < float(last.split(",")[0]) for first, last in lines)
    # More seconds are higher up, which SVG counts from above.
    assert float(lines[0][0].split(",")[1]) > float(lines[0][1].split(",")[1])
    assert {*LINES, "latency", "1,000", "250"} <= names


def test_chart__nothing_takes_any_time__is_drawn_all_the_same() -> None:
    assert "polyline" in chart("latency", "clients", "seconds", {"quick": [(1.0, 0.0)]})


def test_report__of_a_scenario_with_lines__leaves_its_picture(tmp_path: Path) -> None:
    on_a_line = Measurement("product: 250 clients", "s", (0.2,), line="product", x=250)

    write(tmp_path / "latest.json", [Result("latency", {}, (on_a_line,), 1.0), Result("build", {}, (), 1.0)])

    assert {file.name for file in tmp_path.iterdir()} == {"latest.json", "latency.svg"}
