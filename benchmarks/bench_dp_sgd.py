"""DP-SGD against Opacus: examples a second of an MLP 784-256-10 and of a small CNN at batches of
256, one thread.

    python benchmarks/bench_dp_sgd.py [--quick]

Opacus (a peer: pip install opacus) with per-example gradients by hooks and with ghost clipping,
plain SGD as the limit. The same batches for all, and all take whole steps: clipping, noise, update.
Ours is the whole fit, which begins by looking whether the module mixes examples. CPU seconds, then
examples a second.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from functools import partial

import _timing  # first: it sets one BLAS thread
import torch
from torch import nn
from torch.nn import functional

from surelearn.optim.dp_module import fit_private

torch.set_num_threads(1)
BATCH = 256


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), (784,)


def cnn():
    first = [nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)]
    second = [nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10)), (
        1,
        28,
        28,
    )


def ours(module, X, y, batches):
    options = {
        "noise_multiplier": 1.0,
        "clip": 1.0,
        "batch_size": BATCH,
        "step": 0.1,
        "random_state": 0,
    }
    fit_private(copy.deepcopy(module), X, y, batches=batches, **options)


def plain(module, X, y, batches):
    module = copy.deepcopy(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for rows in batches:
        optimizer.zero_grad()
        functional.cross_entropy(module(X[rows]), y[rows]).backward()
        optimizer.step()


def hooks(module, X, y, batches):
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    module = GradSampleModule(copy.deepcopy(module))
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    optimizer = DPOptimizer(
        inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=BATCH
    )
    for rows in batches:
        optimizer.zero_grad()
        functional.cross_entropy(module(X[rows]), y[rows]).backward()
        optimizer.step()


def ghost(module, X, y, batches):
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    module = GradSampleModuleFastGradientClipping(
        copy.deepcopy(module), max_grad_norm=1.0, use_ghost_clipping=True
    )
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    optimizer = DPOptimizerFastGradientClipping(
        inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=BATCH
    )
    criterion = DPLossFastGradientClipping(module, optimizer, nn.CrossEntropyLoss())
    for rows in batches:
        optimizer.zero_grad()
        criterion(module(X[rows]), y[rows]).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a quarter of the steps, once")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # opacus speaks of secure mode and of hooks
    steps, repeats = (30, 1) if quick else (120, 3)
    for name, make in (("MLP 784-256-10", mlp), ("small CNN", cnn)):
        torch.manual_seed(0)
        module, shape = make()
        X, y = torch.randn(4096, *shape), torch.randint(10, (4096,))
        batches = [torch.randint(4096, (BATCH,)) for _ in range(steps)]
        contestants = {
            "surelearn": ours,
            "opacus, ghost clipping": ghost,
            "opacus, hooks": hooks,
            "plain SGD": plain,
        }
        contestants = {who: partial(run, module, X, y, batches) for who, run in contestants.items()}
        try:
            import opacus  # noqa: F401
        except ImportError:
            contestants = {who: run for who, run in contestants.items() if "opacus" not in who}
            print("opacus is not installed: ours beside plain SGD only")
        _timing.compare(f"{name}, {steps} steps of {BATCH}", contestants, repeats=repeats)
        for who, run in contestants.items():
            start = time.process_time()
            run()
            print(f"  {who:<44} {steps * BATCH / (time.process_time() - start):12,.0f} examples/s")


if __name__ == "__main__":
    main()
