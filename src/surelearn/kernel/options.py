"""How a kernel machine is computed: what few people set, in three objects."""

from __future__ import annotations

from surelearn.base import ParameterGroup


class Preconditioner(ParameterGroup):
    """EigenPro's steps: s, q, m and η of Ma and Belkin (2019).

    Parameters
    ----------
    subsample : s, rows whose kernel matrix is decomposed; None chooses
    directions : q, leading eigenvectors in which steps are made shorter; None chooses
    batch_size : m, rows of a step; None chooses
    step : η of EigenPro 2, made smaller where it would diverge; None solves for each block of rows
        instead

    Examples
    --------
    >>> Preconditioner(subsample=1000, directions=40)
    Preconditioner(directions=40, subsample=1000)
    """

    saved_as = "eigenpro-preconditioner/1"

    def __init__(
        self,
        *,
        subsample: int | None = None,
        directions: int | None = None,
        batch_size: int | None = None,
        step: float | None = None,
    ) -> None:
        self.subsample = subsample
        self.directions = directions
        self.batch_size = batch_size
        self.step = step


class Stopping(ParameterGroup):
    """When passes over the rows end before there were ``epochs`` of them.

    Parameters
    ----------
    tol : when the residual is below ``tol`` of the targets' size
    target : when the error (the validation rows', else the training rows' mean squared one) is at
        most this
    time_limit : after so many seconds, at the end of an epoch
    validation_fraction, patience : hold out so many rows, and stop when they have not improved for
        so many epochs

    Examples
    --------
    >>> from surelearn.kernel import EigenProRegressor
    >>> EigenProRegressor().set_params(stopping__tol=1e-6)
    EigenProRegressor(stopping=Stopping(tol=1e-06))
    """

    saved_as = "eigenpro-stopping/1"

    def __init__(
        self,
        *,
        tol: float = 1e-3,
        target: float | None = None,
        time_limit: float | None = None,
        validation_fraction: float | None = None,
        patience: int = 3,
    ) -> None:
        self.tol = tol
        self.target = target
        self.time_limit = time_limit
        self.validation_fraction = validation_fraction
        self.patience = patience


class Compute(ParameterGroup):
    """Where and how exactly a kernel machine is computed.

    Parameters
    ----------
    device : "cpu", "cuda", or "auto": CUDA where there is a device
    dtype : "float32" or "float64"; the eigensystem is always in float64
    memory_limit : bytes; kernel blocks are kept when they fit, else computed again each epoch. None
        is half of the memory, or most of what the device has free
    verbose : whether to say on stderr, after each epoch, how far the fit is

    Examples
    --------
    >>> Compute(device="cpu", dtype="float64")
    Compute(device='cpu', dtype='float64')
    """

    saved_as = "eigenpro-compute/1"

    def __init__(
        self,
        *,
        device: str = "auto",
        dtype: str = "float32",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.verbose = verbose
