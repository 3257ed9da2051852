"""Reads `params.yaml` into validated parameters before any work starts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pipeline.errors import UserError
from schemas.parameters import Parameters


def load_parameters(path: Path) -> Parameters:
    """The parameters in a file. Raises `UserError` naming file, key, what stands there and what should."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run from the project's root, or give its path with --params") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}): make it a readable UTF-8 file") from error
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}; mend that line") from error
    if document is not None and not isinstance(document, dict):
        raise UserError(f"{path} holds a {type(document).__name__}: it must be a mapping of stage names to parameters")
    try:
        return Parameters.model_validate(document or {})
    except ValidationError as error:
        raise UserError("; ".join(_explain(path, detail) for detail in error.errors())) from error


def _explain(path: Path, detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = _siblings(detail["loc"][:-1])
        close = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
        return f"{path}: unknown parameter {key}; {remedy}"
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{path}: {key or 'the whole'} is {detail['input']!r}, but {message}; correct the value"


def _siblings(place: Iterable[int | str]) -> list[str]:
    """The keys that are known at a place of the parameters."""
    found: object = Parameters
    for part in place:
        if isinstance(part, int):
            found = get_args(found)[0]
        elif isinstance(found, type) and issubclass(found, BaseModel):
            found = found.model_fields[part].annotation
    return sorted(found.model_fields) if isinstance(found, type) and issubclass(found, BaseModel) else []
