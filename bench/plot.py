"""A line chart as SVG, by hand: a few lines of one kind of number need no library."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

Line = Sequence[tuple[float, float]]
"""Points by x."""

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 40, 50
_STEPS = 5
# Told apart also by people who do not see colours well; every second one is dashed besides.
_COLOURS: Final = ("#0072b2", "#0072b2", "#d55e00", "#d55e00", "#009e73", "#009e73")


def chart(title: str, x_title: str, y_title: str, lines: Mapping[str, Line]) -> str:
    """The text of an SVG file with the chart. Both axes begin at 0. Each line must have at least one point."""
    most_x = max(x for line in lines.values() for x, _ in line)
    most_y = max(y for line in lines.values() for _, y in line) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + x / most_x * (_WIDTH - _LEFT - _RIGHT)
        down = _HEIGHT - _BOTTOM - y / most_y * (_HEIGHT - _TOP - _BOTTOM)
        return round(across, 1), round(down, 1)

    parts = [
        f'<svg xmlns="{_NAMESPACE}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif">',
        f'<title>{escape(title)}</title><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 22, title, size=15),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, x_title, anchor="middle"),
        _text(_LEFT - 56, _TOP - 8, y_title),
    ]
    for step in range(_STEPS + 1):
        value = most_y * step / _STEPS
        (left, down), (right, _) = at(0, value), at(most_x, value)
        parts.append(f'<path d="M{left} {down}H{right}" stroke="#ddd"/>')
        parts.append(_text(left - 6, down + 4, f"{value:.3g}", anchor="end"))
    for x in sorted({x for line in lines.values() for x, _ in line}):
        across, down = at(x, 0)
        parts.append(_text(across, down + 18, f"{x:,g}", anchor="middle"))
    for number, (name, line) in enumerate(lines.items()):
        parts += _line(name, [at(x, y) for x, y in sorted(line)], number)
    return "\n".join((*parts, "</svg>", ""))


def _line(name: str, points: Sequence[tuple[float, float]], number: int) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    dashes = ' stroke-dasharray="6 4"' if number % 2 else ""
    corners = " ".join(f"{x},{y}" for x, y in points)
    key = _TOP + 20 * number
    start = _WIDTH - _RIGHT + 14
    return [
        f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>',
        *(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points),
        f'<path d="M{start} {key}h28" stroke="{colour}" stroke-width="2"{dashes}/>',
        _text(start + 34, key + 4, name),
    ]


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
