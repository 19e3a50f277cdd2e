"""Bar plots and line plots as SVG, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

__all__ = ["draw_bars", "draw_lines"]

_WIDTH, _LEFT, _RIGHT, _TOP = 760, 220, 60, 44
_COLORS = ("#2f7ed8", "#e0772a", "#3a9d5d", "#a05bc4", "#c8454f", "#8a8a35", "#5b9aa0", "#888888")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;font-size:15px}"
    ".grid{stroke:#8c959f;stroke-opacity:.35}@media(prefers-color-scheme:dark){text{fill:#9aa4af}}"
)


def draw_bars(
    title: str, values: Mapping[str, float], format_value: Callable[[float], str], log: bool = False
) -> str:
    """Returns a plot with a horizontal bar for each value. A logarithmic axis begins at a power of ten."""
    least = 10.0 ** math.floor(math.log10(min(values.values())) - 0.01) if log else 0.0
    scale = _create_scale(least, max(values.values()), _LEFT, _WIDTH - _RIGHT - 40, log)
    parts: list[str] = []
    for at, (name, value) in enumerate(values.items()):
        y = _TOP + at * 26
        bar_color = _COLORS[0] if name.startswith("agentkit") else "#9aa4af"
        length = scale(value) - _LEFT
        parts.append(_draw_text(_LEFT - 8, y + 14, name, "end"))
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="18" rx="2" fill="{bar_color}"/>')
        parts.append(_draw_text(_LEFT + length + 6, y + 14, format_value(value)))
    return _build_svg(title, _TOP + len(values) * 26 + 8, parts)


def draw_lines(
    title: str,
    sizes: Sequence[int],
    series: Mapping[str, Sequence[float]],
    format_value: Callable[[float], str],
    x_label: str,
) -> str:
    """Returns a log-log plot with a line for each series over sizes. A series may end before the last size."""
    bottom, left, right = 380, 80, _WIDTH - 250
    all_values = [value for values in series.values() for value in values]
    low, high = math.floor(math.log10(min(all_values))), math.ceil(math.log10(max(all_values)))
    x = _create_scale(sizes[0], sizes[-1], left, right, True)
    y = _create_scale(10.0**low, 10.0**high, bottom, _TOP, True)
    parts = [_draw_text((left + right) / 2, bottom + 40, x_label, "middle")]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_draw_text(left - 8, at + 4, format_value(10.0**power), "end"))
    parts.extend(_draw_text(x(size), bottom + 20, f"{size:,}", "middle") for size in sizes)
    ends = _move_apart({name: y(values[-1]) for name, values in series.items()}, 17)
    for at, (name, values) in enumerate(series.items()):
        color = _COLORS[at % len(_COLORS)]
        points = [(x(size), y(value)) for size, value in zip(sizes, values, strict=False)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.extend(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{color}"/>' for px, py in points)
        parts.append(f'<rect x="{right + 14}" y="{ends[name] - 5:.1f}" width="10" height="10" fill="{color}"/>')
        parts.append(_draw_text(right + 30, ends[name] + 4, name))
    return _build_svg(title, bottom + 56, parts)


def _create_scale(low: float, high: float, begin: float, end: float, log: bool) -> Callable[[float], float]:
    """Returns a function from a value to its coordinate in pixels."""
    transform = math.log10 if log else float
    span = transform(high) - transform(low) or 1.0

    def get_coordinate(value: float) -> float:
        return begin + (transform(value) - transform(low)) / span * (end - begin)

    return get_coordinate


def _move_apart(places: Mapping[str, float], gap: float) -> dict[str, float]:
    """Returns label positions, moved down until no two labels overlap."""
    moved: dict[str, float] = {}
    previous = -math.inf
    for name, place in sorted(places.items(), key=lambda pair: pair[1]):
        previous = moved[name] = max(place, previous + gap)
    return moved


def _draw_text(x: float, y: float, text: str, anchor: str = "start", css_class: str = "") -> str:
    class_attribute = f' class="{css_class}"' if css_class else ""
    return f'<text{class_attribute} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _build_svg(title: str, height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    body = [
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        _draw_text(12, 24, title, "start", "title"),
    ]
    return "\n".join([head, *body, *parts, "</svg>", ""])
