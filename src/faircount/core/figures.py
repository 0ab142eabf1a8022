"""The one place that talks to matplotlib, which is imported only when a figure is drawn."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.files import describe_os_error

SUFFIXES = (".png", ".svg", ".pdf")

_MISSING = "plots need matplotlib: install faircount[plot]"


def check_figure(path: Path) -> None:
    """Refuse a path that no figure can be saved to, or a machine without matplotlib.

    Commands call this before they compute or spend anything, so that a wrong suffix does not cost
    a release.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"a plot is a .png, .svg or .pdf file, not {path.name}")
    if importlib.util.find_spec("matplotlib") is None:
        raise FaircountError(_MISSING)


def create_figure(width: float, height: float) -> Any:
    """Create a figure for a file, with its size in inches.

    It is not made by pyplot, which would keep it in memory and may open a window.
    """
    return _matplotlib("figure").Figure(figsize=(width, height), layout="constrained", dpi=150)


def create_axes(width: float, height: float) -> Any:
    """Create axes that a notebook displays by itself, and a script with `pyplot.show()`."""
    return _matplotlib("pyplot").subplots(figsize=(width, height), layout="constrained")[1]


def _matplotlib(module: str) -> Any:
    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ImportError:
        raise FaircountError(_MISSING) from None


def save_figure(figure: Any, path: Path, description: str = "") -> None:
    """Save a figure in the format of the path's suffix, with a description in its metadata."""
    # Formats differ in the metadata keys they know, and matplotlib warns about an unknown one.
    key = "Subject" if path.suffix.lower() == ".pdf" else "Description"
    metadata = {key: description} if description else None
    try:
        with warnings.catch_warnings():
            # A label may have letters that the font lacks. They are drawn as boxes, which the
            # reader of the figure sees; the warning would only clutter the command's output.
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            figure.savefig(path, metadata=metadata)
    except OSError as problem:
        raise FaircountError(f"{path} cannot be written: {describe_os_error(problem)}") from None
