"""A torch module that a function of the user's makes, with weights from a safetensors file."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from surelearn import files
from surelearn.persistence.learners import LONGEST_HEADER
from surelearn.persistence.model_files.columns import NumberColumns, plain_name
from surelearn.persistence.model_files.model_file import Answered, ModelFile, of_outputs
from surelearn.persistence.modules import check_shapes
from surelearn.persistence.words import first_line, what
from surelearn.subject.torch_modules import is_module, module_functions
from surelearn.types import Array
from surelearn.unpacking import memory


def read_torch(factory: str, weights: Path) -> ModelFile:
    """The module that a function makes, with these weights.

    The function is code of the user's, which they name; the file of weights is data.
    """
    if weights.suffix.lower() != ".safetensors":
        raise ValueError(
            f"--weights {weights} must be a .safetensors file: save the weights with"
            " safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"
        )
    if not weights.exists():
        raise ValueError(f"--weights {weights} does not exist")
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{factory} makes a torch module, which needs PyTorch: pip install 'surelearn[torch]'",
            name="torch",
        ) from None
    content = files.read(weights, most=memory())
    arrays = _arrays(weights, content)
    module = _made(factory)
    try:
        given = {name: torch.tensor(np.array(value, order="C")) for name, value in arrays.items()}
        check_shapes(module, given)
        module.load_state_dict(given)
    except Exception as error:  # whatever torch says of weights that are not the module's
        said = first_line(error).removeprefix("ModuleMismatchError: ")
        raise ValueError(f"--weights {weights}: {said}") from None
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return of_module(module, f"{plain_name(weights.name)} in {factory}", digest)


def of_module(module: Any, name: str, digest: str) -> ModelFile:
    """A torch module that reads columns of numbers in their order and gives outputs, one per class
    or a single one.
    """
    values = module_functions(module).values
    kind = module_functions(module).dtype

    def ask(rows: pd.DataFrame) -> Answered:
        return of_outputs(_outputs(rows))

    def numbers(rows: pd.DataFrame) -> Answered:
        found = _outputs(rows)
        if found.shape[1] != 1:
            raise ValueError(f"it gives {found.shape[1]} outputs: for a number one is needed")
        return Answered(found[:, 0].astype(float))

    def _outputs(rows: pd.DataFrame) -> Array:
        found = np.asarray(values(rows.to_numpy(dtype=kind)))
        if found.ndim != 2 or len(found) != len(rows):
            raise ValueError(f"it gives outputs of shape {found.shape} for {len(rows):,} rows")
        return found

    return ModelFile(
        name=name,
        digest=digest,
        kind="a torch module",
        task=None,
        reads=NumberColumns(),
        ask=ask,
        ask_number=numbers,
    )


def _arrays(path: Path, content: bytes) -> dict[str, Any]:
    """The arrays of a safetensors file, whose header is not too long."""
    from safetensors.numpy import load

    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content), LONGEST_HEADER):
        raise ValueError(f"--weights {path} is {what(content)}, not a safetensors file")
    try:
        return load(content)
    except Exception as error:  # damaged, or numbers that NumPy has not
        raise ValueError(
            f"--weights {path} is not a safetensors file that is read: {first_line(error)}"
        ) from None


def _made(factory: str) -> Any:
    """What the function makes."""
    where, _, name = factory.partition(":")
    with _here():
        try:
            function: Any = importlib.import_module(where)
        except ModuleNotFoundError as error:
            if error.name and not f"{where}.".startswith(f"{error.name}."):
                raise ValueError(f"{factory}: importing {where} needs {error.name}") from None
            raise ValueError(
                f"{factory}: there is no module {where!r} here: name it as Python imports it from"
                " this folder"
            ) from None
        except Exception as error:  # code of the user's
            raise ValueError(f"{factory}: importing {where} failed: {first_line(error)}") from None
        for part in name.split("."):
            if not hasattr(function, part):
                raise ValueError(f"{factory}: {where} has no {part!r}")
            function = getattr(function, part)
        try:
            made = function()
        except Exception as error:  # code of the user's
            raise ValueError(f"{factory} failed: {first_line(error)}") from None
    if not is_module(made):
        raise ValueError(f"{factory} must make a torch module, not a {type(made).__name__}")
    return made


@contextmanager
def _here() -> Iterator[None]:
    """The working folder last on Python's path, so that it hides no installed module."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)
