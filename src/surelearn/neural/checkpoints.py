"""Checkpoints: tensors (safetensors) with numbers and the generators' states (JSON) in one file,
written whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelearn import files

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = "surelearn-checkpoint/1"
MOST = 64 * 2**30  # bytes


def write(
    path: Path, parts: Mapping[str, Mapping[str, Tensor]], numbers: Mapping[str, Any]
) -> None:
    """Write parts of tensors by name, plain numbers, and the states of torch's generators; what was
    written is read back from its bytes and compared.
    """
    import torch
    from safetensors.torch import load, save

    generators = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        generators |= {f"cuda{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    # safetensors writes the memory as it lies, and refuses memory that is shared
    tensors = {
        f"{part}:{name}": tensor.detach().cpu().contiguous().clone()
        for part, inside in (*parts.items(), ("generator", generators))
        for name, tensor in inside.items()
    }
    content = save(tensors, metadata={"surelearn": json.dumps({"format": FORMAT, **numbers})})
    again = load(content)
    for name, tensor in tensors.items():
        if again[name].dtype != tensor.dtype or not torch.equal(
            again[name].view(torch.uint8) if tensor.ndim else again[name],
            tensor.view(torch.uint8) if tensor.ndim else tensor,
        ):
            raise ValueError(f"{path}: {name} was not written as it is")
    files.write(path, content)


def read(
    path: Path, *, set_random: bool = False
) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The parts and numbers that `write` wrote; ``set_random`` gives torch's generators the states
    that they had then.
    """
    import torch
    from safetensors.torch import load

    content = files.read(path, most=MOST)
    try:
        size = int.from_bytes(content[:8], "little")
        numbers = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["surelearn"])
        if numbers.pop("format") != FORMAT:
            raise ValueError("of another format")
        tensors = load(content)
        parts: dict[str, dict[str, Tensor]] = {}
        for place, tensor in tensors.items():
            part, _, name = place.partition(":")
            parts.setdefault(part, {})[name] = tensor
        generators = parts.pop("generator")
    except Exception as error:  # whatever other bytes lead to
        raise ValueError(f"{path} is no checkpoint of this surelearn: remove it") from error
    if set_random:
        torch.set_rng_state(generators.pop("cpu"))
        for name, state in generators.items():
            if torch.cuda.is_available():
                torch.cuda.set_rng_state(state, int(name.removeprefix("cuda")))
    return parts, numbers


def check_shapes(path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Refuse a checkpoint of other weights, by names and shapes."""
    shapes = {name: tuple(t.shape) for name, t in found.items()}
    if shapes != {name: tuple(t.shape) for name, t in wanted.items()}:
        raise ValueError(
            f"{path} is a checkpoint of another network: remove it, or name another file"
        )
