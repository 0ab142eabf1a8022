"""The files that a result is written into."""

from pathlib import Path

from faircount.core.errors import ParameterError


def check_targets(files: dict[str, Path | None]) -> list[Path]:
    """The files that were asked for; refused if one cannot be written as its option says."""
    from faircount.owner.exports import FIGURES, check_file

    targets = []
    for option, path in files.items():
        if path is None:
            continue
        kinds = FIGURES if option == "plot" else (option,)
        if path.suffix.lower().removeprefix(".") not in kinds:
            names = ", ".join(f".{kind}" for kind in kinds)
            raise ParameterError(f"--{option} writes a file that ends in {names}, not {path.name}")
        check_file(path)
        targets.append(path)
    return targets
