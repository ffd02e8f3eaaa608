"""Whether there is PyTorch, and where a network is trained and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def device_of(device: str) -> torch.device:
    """The torch device of a name; "auto" is the GPU where there is one.

    Examples
    --------
    >>> device_of("cpu")
    device(type='cpu')
    """
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        made = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda' or like 'cuda:1', not {device!r:.60}"
        ) from None
    if made.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' needs a GPU that PyTorch can use, and there is none here")
    return made


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def need_torch() -> None:
    """Refuse to go on without PyTorch."""
    if not has_torch():
        raise ModuleNotFoundError(
            "networks need PyTorch: pip install 'surelearn[torch]'", name="torch"
        )
