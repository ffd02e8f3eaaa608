"""The one loop: what it computes, and that a killed run goes on to the same weights."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from surelearn.jobs import Progress  # noqa: E402
from surelearn.neural import DrawnBatches, Ema, Shuffled, Swa, Training, schedules, train  # noqa: E402
from surelearn.neural.muon import Muon, orthogonalized  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(seed=0, dropout=0.0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(6, 1)
        )


def rows(n=22):
    rng = np.random.default_rng(1)
    X = torch.tensor(rng.normal(size=(n, 3)), dtype=torch.float32)
    return X, X[:, 0] * X[:, 1]


def squared(module, X, y):
    return lambda batch: ((module(X[batch])[:, 0] - y[batch]) ** 2).mean()


def flat(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()]).numpy()


# --------------------------------------------------------------------------------------------------
def test_sgd_with_momentum_decay_and_clipping_is_the_formula():
    """Against the update written out in NumPy, on a linear model."""
    X, y = rows()
    w = torch.nn.Parameter(torch.zeros(3, 1))
    plan = Training(
        epochs=3, optimizer="sgd", learning_rate=0.1, momentum=0.9, weight_decay=0.01, clip=0.5,
        schedule=schedules.Inverse(c=1.0),
    )  # fmt: skip
    batches = Shuffled(22, 8, seed=3)
    done = train(
        lambda batch: ((X[batch] @ w)[:, 0] - y[batch]).square().mean(), {"w": w}, batches, plan
    )
    v, pushed, t = np.zeros((3, 1)), np.zeros((3, 1)), 0
    for epoch in range(3):
        for batch in batches.epoch(epoch):
            A, b = X.numpy()[batch].astype(float), y.numpy()[batch].astype(float)
            g = 2 * A.T @ (A @ v - b[:, None]) / len(batch)
            g *= min(1.0, 0.5 / np.linalg.norm(g))
            pushed = 0.9 * pushed + g + 0.01 * v
            v = v - 0.1 / (1 + t / 3) * pushed
            t += 1
    np.testing.assert_allclose(w.detach().numpy(), v, rtol=1e-5, atol=1e-6)
    assert (done.steps, done.epochs, done.stopped) == (9, 3, "epochs")


def test_adamw_is_torchs_own():
    X, y = rows()
    ours, theirs = network(), network()
    plan = Training(epochs=4, learning_rate=0.01, weight_decay=0.1, rates={"0.weight": 3.0})
    train(squared(ours, X, y), ours, Shuffled(22, 8), plan)
    parts = dict(theirs.named_parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [parts["0.weight"]], "lr": 0.03, "weight_decay": 0.1},
            {"params": [parts["3.weight"]], "lr": 0.01, "weight_decay": 0.1},
            {"params": [parts["0.bias"], parts["3.bias"]], "lr": 0.01, "weight_decay": 0.0},
        ]
    )
    for epoch in range(4):
        for batch in Shuffled(22, 8).epoch(epoch):
            optimizer.zero_grad()
            squared(theirs, X, y)(batch).backward()
            optimizer.step()
    np.testing.assert_allclose(flat(ours), flat(theirs), rtol=1e-6, atol=1e-7)


def test_muon_steps_along_the_nearest_orthogonal_matrix():
    """All singular values of a step are alike; the batch of equal shapes is each by itself."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        G, H = torch.randn(2, 5, 3), torch.randn(4, 4)
    U, _, Vh = torch.linalg.svd(G, full_matrices=False)
    found = orthogonalized(G)
    sizes = torch.linalg.svdvals(found)
    assert 0.6 < sizes.min() <= sizes.max() < 1.25
    assert ((found * (U @ Vh)).sum(dim=(1, 2)) / (found.norm(dim=(1, 2)) * 3**0.5)).min() > 0.97
    A, B, C = (torch.nn.Parameter(torch.ones(s)) for s in ((5, 3), (5, 3), (4, 4)))
    A.grad, B.grad, C.grad = G[0].clone(), G[1].clone(), H.clone()
    Muon([A, B, C], lr=0.1, weight_decay=0.5).step()
    for W, gradient in ((A, G[0]), (B, G[1]), (C, H)):
        wanted = 0.95 - 0.1 * 0.2 * max(W.shape) ** 0.5 * orthogonalized(1.95 * gradient)
        np.testing.assert_allclose(W.detach(), wanted, rtol=1e-5, atol=1e-6)


def test_muon_learns_with_adamw_beside_it():
    X, y = rows(64)
    module = network()
    before = float(squared(module, X, y)(slice(None)).detach())
    plan = Training(epochs=30, optimizer="muon", hidden=("0.weight",), learning_rate=0.02)
    train(squared(module, X, y), module, Shuffled(64, 16), plan)
    assert float(squared(module, X, y)(slice(None)).detach()) < 0.5 * before


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        (schedules.Constant(), [1, 1, 1, 1]),
        (schedules.Steps((2, 4)), [1, 1, 0.1, 0.01]),
        (schedules.Inverse(0.5), [1, 0.5, 1 / 2.5, 0.25]),
        (schedules.InverseRoot(0.5), [1, 0.5**0.5, 0.4**0.5, 0.5]),
        (schedules.Cosine(), [1, 0.75, 0.5, 0]),
        (schedules.OneCycle(rise=0.5, start=0.1, end=0.0), [0.1, 0.775, 1, 0]),
        (schedules.Waves(1), [0, 0.9304, 0.9304, 0]),
        (schedules.WarmUp(4, schedules.Cosine()), [0, 0.375, 0.375, 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_schedules(schedule, wanted):
    """At epochs 0, 2, 3 and 6 of 6; written out by hand."""
    found = [schedule(t, 6) for t in (0, 2, 3, 6)]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("how", [Ema(0.9, start=1.0), Swa(1.0)])
def test_averages_are_of_the_weights_after_each_step(how):
    X, y = rows()
    seen, module = [], network()
    plan = Training(epochs=3, optimizer="sgd", learning_rate=0.1, average=how)
    train(
        squared(module, X, y),
        module,
        Shuffled(22, 8),
        plan,
        after=lambda: seen.append(flat(module)),
    )
    late = seen[3:]  # after epoch 1
    if isinstance(how, Swa):
        wanted = np.mean(late, axis=0)
    else:
        wanted = seen[2]
        for t, weights in enumerate(late):
            d = min(0.9, (1 + t) / (10 + t))
            wanted = d * wanted + (1 - d) * weights
    np.testing.assert_allclose(flat(module), wanted, rtol=1e-5, atol=1e-6)


def test_select_rows_choose_the_epoch_and_patience_ends_the_run():
    X, y = rows()
    module, seen = network(), []
    scores = iter([3.0, 2.0, 2.5, 2.0, 9.0])

    def select():
        assert not module.training
        seen.append(flat(module))
        return next(scores)

    done = train(
        squared(module, X, y),
        module,
        Shuffled(22, 8),
        Training(epochs=9, patience=2),
        select=select,
    )
    assert (done.best, done.epochs, done.stopped) == (1, 4, "patience")
    assert done.selected == (3.0, 2.0, 2.5, 2.0)
    np.testing.assert_array_equal(flat(module), seen[1])


def test_gradients_that_the_step_sets_itself_are_followed():
    w = torch.nn.Parameter(torch.zeros(2))

    def step(batch):
        w.grad = torch.tensor([1.0, -2.0]) * batch

    plan = Training(epochs=1, optimizer="sgd", learning_rate=0.5)
    done = train(
        step, {"w": w}, DrawnBatches(2, iter([1.0, 3.0])), plan, after=lambda: w.clamp_(max=3.0)
    )
    assert w.tolist() == [-2.0, 3.0]
    assert done.losses == ()


def test_weights_with_two_names_are_trained_once():
    X, y = rows()
    tied = torch.nn.Module()
    tied.a = torch.nn.Linear(3, 1)
    tied.b = tied.a
    one = torch.nn.Linear(3, 1)
    one.load_state_dict(tied.a.state_dict())
    plan = Training(epochs=2, optimizer="sgd", learning_rate=0.1)
    train(squared(tied.a, X, y), tied, Shuffled(22, 8), plan)
    train(squared(one, X, y), one, Shuffled(22, 8), plan)
    np.testing.assert_array_equal(flat(tied), flat(one))


def test_batches_that_end_early_are_said():
    w = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(ValueError, match="the batches ended after 2 steps"):
        train(lambda x: (w * x).sum(), {"w": w}, DrawnBatches(3, iter([1.0, 2.0])))


def test_progress_has_every_epoch():
    class Told(Progress):
        said = ()

        def start(self, total, what):
            self.said += (total, what)

        def advance(self, key):
            self.said += (key,)

        def finish(self):
            self.said += ("end",)

    X, y = rows()
    told, module = Told(), network()
    train(squared(module, X, y), module, Shuffled(22, 8), Training(epochs=2), progress=told)
    assert told.said == (2, "epochs", "epoch 1", "epoch 2", "end")


def test_bfloat16_products_leave_the_weights_in_their_own_precision():
    X, y = rows(64)
    module, kinds = network(), set()

    def step(batch):
        out = module(X[batch])[:, 0]
        kinds.add(out.dtype)
        return ((out.float() - y[batch]) ** 2).mean()

    train(step, module, Shuffled(64, 16), Training(epochs=2, precision="bfloat16"))
    assert kinds == {torch.bfloat16}
    assert {p.dtype for p in module.parameters()} == {torch.float32}


# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("epochs must be a whole number", {"epochs": 0}),
        ("learning_rate must be positive", {"learning_rate": -1.0}),
        ("clip must be positive", {"clip": 0.0}),
        ("patience must be a whole number", {"patience": 0}),
        ("optimizer must be", {"optimizer": "adam"}),
        ("precision must be", {"precision": "float8"}),
        ("needs hidden=", {"optimizer": "muon"}),
    ],
)
def test_a_plan_that_cannot_be_is_refused(words, how):
    with pytest.raises(ValueError, match=words):
        Training(**how)


def test_bad_calls_get_one_sentence():
    X, y = rows()
    module = network()
    with pytest.raises(ValueError, match="names parameters that there are not: x"):
        train(squared(module, X, y), module, Shuffled(22, 8), Training(rates={"x": 2.0}))
    with pytest.raises(ValueError, match="at least one tensor that needs a gradient"):
        train(squared(module, X, y), {"w": torch.zeros(2)}, Shuffled(22, 8))
    with pytest.raises(ValueError, match="no batches"):
        train(squared(module, X, y), module, Shuffled(0, 8))
    with pytest.raises(ValueError, match="the loss is nan in epoch 1: lower learning_rate"):
        train(squared(module, X, y * float("nan")), module, Shuffled(22, 8))


# --------------------------------------------------------------------------------------------------
PLAN = Training(
    epochs=4, optimizer="muon", hidden=("0.weight",), learning_rate=0.02, average=Ema(0.8),
    schedule=schedules.Cosine(), patience=4,
)  # fmt: skip


def stop():
    raise KeyboardInterrupt


def full_run(path=None, every=None, until=None, plan=PLAN, end=stop):
    """Dropout, Muon, an average, select rows: all that a checkpoint must hold."""
    X, y = rows(40)
    module, steps = network(dropout=0.5), [0]

    def step(batch):
        steps[0] += 1
        if steps[0] == until:
            end()
        return squared(module, X, y)(batch)

    def select():
        with torch.no_grad():
            return float(squared(module, X, y)(slice(20)))

    done = train(
        step, module, Shuffled(40, 8), plan, select=select, seed=5, checkpoint=path, every=every
    )
    return flat(module).tobytes(), done


@pytest.mark.parametrize("every", [None, 1, 3])
@pytest.mark.parametrize("until", [2, 7, 11, 20])
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path, every, until):
    whole, done = full_run()
    with pytest.raises(KeyboardInterrupt):
        full_run(tmp_path / "run", every, until)
    again, resumed = full_run(tmp_path / "run", every)
    assert again == whole
    assert resumed.selected == done.selected
    assert resumed.losses == done.losses
    expected = (until - 1) // (every or 5) * (every or 5)
    assert resumed.resumed == expected


def test_a_finished_run_is_not_run_again(tmp_path):
    first, _ = full_run(tmp_path / "run")
    again, done = full_run(tmp_path / "run", until=1)
    assert again == first
    assert done.resumed == done.steps == 20


def test_torchs_generator_is_put_back():
    before = torch.get_rng_state()
    full_run()
    assert torch.equal(before, torch.get_rng_state())


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run"
    full_run(path)
    with pytest.raises(ValueError, match="of another run, with another plan: remove it"):
        full_run(path, plan=Training(epochs=5))
    X, y = rows(40)
    other = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 1))
    with pytest.raises(ValueError, match="of another network"):
        train(squared(other, X, y), other, Shuffled(40, 8), PLAN, checkpoint=path)
    for content in (b"", b"nonsense", path.read_bytes()[:-3]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no checkpoint of this surelearn"):
            full_run(path)


def test_what_was_not_written_as_it_is_is_noticed(tmp_path, monkeypatch):
    import safetensors.torch as library

    right = library.save

    def wrong(tensors, metadata=None):
        name = max(tensors, key=lambda name: tensors[name].numel())
        return right(tensors | {name: torch.zeros_like(tensors[name])}, metadata=metadata)

    monkeypatch.setattr(library, "save", wrong)
    with pytest.raises(ValueError, match="was not written as it is"):
        full_run(tmp_path / "run")
    assert not list(tmp_path.iterdir())


COMMON = """
import sys, numpy as np, torch
torch.set_num_threads(1)
from surelearn.neural import Ema, Training, Shuffled, train
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
rng = np.random.default_rng(1)
X = torch.tensor(rng.normal(size=(40, 3)), dtype=torch.float32)
y = X[:, 0] * X[:, 1]
plan = Training(epochs=3, learning_rate=0.02, average=Ema(0.9), clip=0.5)
def step(batch):
    return ((module(X[batch])[:, 0] - y[batch]) ** 2).mean()
def flat():
    return torch.cat([p.detach().flatten() for p in module.parameters()]).tolist()
"""


def program(path, text):
    path.write_text(COMMON + textwrap.dedent(text))
    return path


def killed(kill, path):
    """A process that is killed at step ``kill``, or at its rename −``kill`` of a checkpoint."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads; one runs here
        child = os.fork()
    if child:
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    try:
        rename, renamed = os.replace, []

        def dies(a, b):
            renamed.append(b)
            if len(renamed) == -kill:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(a, b)

        os.replace = dies
        full_run(path, 2, kill, end=lambda: os.kill(os.getpid(), signal.SIGKILL))
    finally:
        os._exit(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.parametrize("kill", [4, 8, 19, -1, -3])
def test_killed_with_9_it_resumes_to_the_same_bytes(tmp_path, kill):
    """At a step, or while a checkpoint takes the place of the last."""
    whole, _ = full_run()
    assert killed(kill, tmp_path / "run") == signal.SIGKILL
    assert (tmp_path / "run").exists() == (kill != -1)
    again, done = full_run(tmp_path / "run", 2)
    assert again == whole
    assert done.resumed == ((kill - 1) // 2 * 2 if kill > 0 else 2 * (-kill - 1))


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path):
    """Started by torchrun, over gloo, with batches that do not divide by two."""
    script = program(
        tmp_path / "two.py",
        """
        import json, os
        import torch.distributed as dist
        if "RANK" in os.environ:
            dist.init_process_group("gloo")
            torch.manual_seed(int(os.environ["RANK"]))
            if os.environ["RANK"] == "1":
                module[0].weight.data.mul_(3)  # the first one's weights count
        train(step, module, Shuffled(40, 7), plan, checkpoint=sys.argv[1])
        if os.environ.get("RANK", "0") == "0":
            print("weights", json.dumps(flat()))
        if "RANK" in os.environ:
            dist.destroy_process_group()
        """,
    )

    def weights(*command):
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([*command], capture_output=True, text=True, env=env, check=False)  # noqa: S603
        line = [one for one in done.stdout.splitlines() if one.startswith("weights ")]
        assert line, done.stderr[-2000:]
        return json.loads(line[0].removeprefix("weights "))

    one = weights(sys.executable, str(script), str(tmp_path / "one"))
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    two = weights(*torchrun, str(script), str(tmp_path / "two"))
    np.testing.assert_allclose(one, two, atol=1e-5)
