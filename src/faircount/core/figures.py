"""Where figures are drawn: matplotlib is loaded when one is drawn, and not before."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, ParameterError

SUFFIXES = (".png", ".svg", ".pdf")


def check_figure(path: Path) -> None:
    """Refuse a name of another kind of file, or a machine without matplotlib, before there is anything to draw."""
    from importlib.util import find_spec

    if path.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"a plot is a .png, .svg or .pdf file, not {path.name}")
    if find_spec("matplotlib") is None:
        raise FaircountError("plots need matplotlib: install faircount[plot]")


def blank_figure(width: float, height: float) -> Any:
    """A figure of so many inches that belongs to no window."""
    return _matplotlib("figure").Figure(figsize=(width, height), layout="constrained", dpi=150)


def shown_axes(width: float, height: float) -> Any:
    """Axes of a figure that a notebook shows by itself, and a program with `matplotlib.pyplot.show()`."""
    return _matplotlib("pyplot").subplots(figsize=(width, height), layout="constrained")[1]


def _matplotlib(part: str) -> Any:
    try:
        return import_module(f"matplotlib.{part}")
    except ImportError:
        raise FaircountError("plots need matplotlib: install faircount[plot]") from None


def save_figure(figure: Any, path: Path, about: str = "") -> None:
    """Write it in the format of the path's suffix; `about` is written into the file, for programs that read it."""
    name = "Subject" if path.suffix.lower() == ".pdf" else "Description"
    try:
        with warnings.catch_warnings():  # a label may have letters that the font lacks: they are drawn as boxes
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            figure.savefig(path, metadata={name: about} if about else None)
    except OSError as problem:
        raise FaircountError(f"{path} cannot be written: {(problem.strerror or 'unknown reason').lower()}") from None
