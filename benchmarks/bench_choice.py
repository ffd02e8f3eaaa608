"""What the audit chooses, beside what other tools give: same tables, same splits.

    python benchmarks/bench_choice.py [--tables titanic sick …] [--splits 5] [--rows 50000]
    [--minutes M] [--out choice.jsonl]
    [--peer AutoGluon=PYTHON --peer FLAML=PYTHON --peer CatBoost=PYTHON …]

The list of tables below was fixed before any candidate was tuned for it; those of ../shared/data
take part where they are there. For each split 70% of the rows are to fit on and 30% to score,
drawn by the split's number. Ours is what `surelearn audit` would choose and fit on the same 70%:
candidates by cross-validation among them, nothing else. HistGradientBoosting and LightGBM run in
this environment at their defaults; a peer that conflicts with our constraints runs in its own, whose
Python is given. AutoGluon and FLAML get the CPU time that ours took, and at least ten seconds: their
clock counts CPU time, so that other work on the machine takes nothing from them. The CPU time that
each took beside ours is printed. For classes: errors and log
loss (probabilities clipped to 1e-6; a model without probabilities has none). For numbers: mean
absolute error, and the width of the constant interval that covers 90% of the scored rows. Answers
are kept in --out, line by line, so that a run that was stopped goes on. "Behind" is the mean
difference to the best of all on the same splits, with its paired standard error.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from sklearn import datasets

from surelearn.data import Table, read_table
from surelearn.jobs import Runner
from surelearn.subject import subject_of

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
HERE = ("HistGradientBoosting", "LightGBM")
CLIP = 1e-6


@dataclass(frozen=True)
class Source:
    """A table: its name, how it is read, its target, and whether it is a real one."""

    name: str
    read: Callable[[], pd.DataFrame]
    target: str
    task: str
    real: bool = True


def shared(name: str, **options: Any) -> Callable[[], pd.DataFrame]:
    """A file of ../shared/data."""
    return lambda: pd.read_csv(SHARED / name, **options)


def built_in(load: Callable[..., Any]) -> Callable[[], pd.DataFrame]:
    """A table that scikit-learn ships; its target is called target."""
    return lambda: load(as_frame=True).frame


def adult() -> pd.DataFrame:
    names = [*map(str, range(14)), "target"]
    kept = {"header": None, "names": names, "skipinitialspace": True, "na_values": "?"}
    parts = [pd.read_csv(SHARED / f"adult_{part}.csv", **kept) for part in ("train", "test")]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(target=frame["target"].str.rstrip("."))


def higgs() -> pd.DataFrame:
    frame = pd.read_csv(SHARED / "higgs7k_train.tsv", sep="\t", header=None)
    return frame.set_axis(["target", *(f"x{i}" for i in range(1, frame.shape[1]))], axis=1)


def sentences() -> pd.DataFrame:
    names = {"sep": "\t", "header": None, "names": ["text", "target"], "quoting": 3}
    parts = [
        pd.read_csv(SHARED / "sst2" / f"sst2_{part}.tsv", **names) for part in ("train", "dev")
    ]
    return pd.concat(parts, ignore_index=True)


def friedman() -> pd.DataFrame:
    X, y = datasets.make_friedman1(2000, n_features=10, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]).assign(target=y)


def rare_and_mixed() -> pd.DataFrame:
    """4,000 rows, a class of about 4%, categories that interact with numbers, values missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    shop, day = rng.integers(0, 12, 4000), rng.integers(0, 7, 4000)
    score = X[:, 0] * (shop % 3 - 1) + np.abs(X[:, 1]) + 0.8 * (day > 4) * X[:, 2]
    y = rng.random(4000) < 1 / (1 + np.exp(-2.5 * (score - 2.6)))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(6)])
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    frame["shop"], frame["day"] = [f"shop {one}" for one in shop], [f"day {one}" for one in day]
    return frame.assign(target=np.where(y, "yes", "no"))


TABLES = (
    Source("titanic", shared("titanic.csv"), "Survived", "classification"),
    Source("adult", adult, "target", "classification"),
    Source("sick", shared("sick.csv", na_values="?"), "Class", "classification"),
    Source("letter", shared("letter.csv"), "letter", "classification"),
    Source("higgs", higgs, "target", "classification"),
    Source("bbc news", shared("bbc_news.csv.gz"), "label", "classification"),
    Source("sst2", sentences, "target", "classification"),
    Source("breast cancer", built_in(datasets.load_breast_cancer), "target", "classification"),
    Source("digits", built_in(datasets.load_digits), "target", "classification"),
    Source("rare and mixed", rare_and_mixed, "target", "classification", real=False),
    Source(
        "ames", shared("ames.csv", keep_default_na=False, na_values=""), "SalePrice", "regression"
    ),
    Source("california", shared("california_housing.csv"), "median_house_value", "regression"),
    Source("diabetes", built_in(datasets.load_diabetes), "target", "regression"),
    Source("friedman", friedman, "target", "regression", real=False),
)


def cpu() -> float:
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    found = [resource.getrusage(one) for one in whose]
    return sum(one.ru_utime + one.ru_stime for one in found)


def divided(source: Source, split: int, rows: int) -> tuple[Table, np.ndarray, np.ndarray]:
    """The table as the audit reads it, and the rows to fit on and to score, drawn by the number."""
    frame = source.read()
    rng = np.random.default_rng([split, len(frame)])
    kept = rng.permutation(len(frame))[:rows]
    frame = frame.iloc[kept].reset_index(drop=True)
    table = read_table(frame, target=source.target, task=source.task)
    cut = int(0.7 * len(table.y))
    return table, np.arange(cut), np.arange(cut, len(table.y))


def ours(
    table: Table, fit_rows: np.ndarray, new_rows: np.ndarray, minutes: float | None = None
) -> dict[str, Any]:
    """What the audit chooses and fits on the rows to fit on, and its answers for the others."""
    from surelearn.auditing.fitting import fit
    from surelearn.auditing.options import Options
    from surelearn.selection.split import Split

    before = cpu()
    none = np.zeros(0, dtype=np.int64)
    columns = [column.name for column in table.columns if column.kind in KINDS]
    split = Split(fit=fit_rows, select=none, certify=new_rows, order="hash", keys=none)
    fitted = fit(table, split, columns, None, Options(minutes=minutes), Runner(n_jobs=2))
    get_reusable_executor().shutdown()  # only then is the CPU time of its processes known
    X = table.X[columns].iloc[new_rows]
    found = {"chosen": fitted.selection.name, "seconds": cpu() - before}
    found["answer"] = np.asarray(fitted.model.predict(X))
    subject = subject_of(fitted.model)
    if table.task == "classification" and subject.gives_probabilities:
        found["probability"] = np.asarray(fitted.model.predict_proba(X))
        found["classes"] = [str(one) for one in fitted.model.classes_]
    return found


KINDS = ("number", "category", "text", "date")


def theirs(
    peer: str, python: str, table: Table, rows: tuple[Any, Any], split: int, limit: float
) -> dict[str, Any]:
    """A peer's answers, from a process of its own, which is told how many CPU seconds it has."""
    kinds = {c.name: c.kind for c in table.columns if c.kind in KINDS and c.kind != "date"}
    classes = sorted({str(one) for one in table.y}) if table.task == "classification" else []
    frame = table.X[list(kinds)]
    target = table.y.astype(str) if classes else table.y.astype(float)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit = frame.iloc[rows[0]].assign(target=target[rows[0]])
        spec = {"kinds": kinds, "task": table.task, "classes": classes, "seed": split}
        fit.reset_index(drop=True).to_parquet(folder / "fit.parquet")
        frame.iloc[rows[1]].reset_index(drop=True).to_parquet(folder / "new.parquet")
        (folder / "spec.json").write_text(json.dumps(spec))
        worker = Path(__file__).with_name("_choice_peers.py")
        command = [python, str(worker), name, peer, str(limit)]
        ended = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        if ended.returncode:
            raise SystemExit(f"{peer}: {ended.stderr.strip().splitlines()[-1]}")
        with np.load(folder / "answers.npz", allow_pickle=False) as kept:
            found = {key: kept[key] for key in kept.files}
    return found | {"chosen": peer, "seconds": float(found["seconds"]), "classes": classes}


def scored(table: Table, rows: np.ndarray, found: dict[str, Any]) -> dict[str, float]:
    """Errors and log loss, or mean absolute error and the width that covers 90%."""
    y = table.y[rows]
    if table.task == "regression":
        miss = np.abs(found["answer"].astype(float) - y.astype(float))
        return {"error": float(miss.mean()), "width": 2 * float(np.quantile(miss, 0.9))}
    truth, answer = y.astype(str), found["answer"].astype(str)
    kept = {"error": float((truth != answer).mean()), "log loss": math.nan}
    if "probability" in found:
        where = {name: i for i, name in enumerate(found["classes"])}
        column = np.array([where.get(one, -1) for one in truth])
        sure = np.where(column < 0, 0.0, found["probability"][np.arange(len(y)), column])
        kept["log loss"] = float(-np.log(np.clip(sure, CLIP, 1)).mean())
    return kept


def lines(out: Path | None) -> list[dict[str, Any]]:
    if out is None or not out.exists():
        return []
    return [json.loads(line) for line in out.read_text().splitlines() if line.strip()]


def run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One line for each table, split and tool; those that are kept already are not run again."""
    kept = lines(options.out)
    done = {(one["table"], one["split"], one["tool"]): one["seconds"] for one in kept}
    yield from kept
    peers = dict.fromkeys(HERE, sys.executable) | dict(one.split("=", 1) for one in options.peer)
    for source in TABLES:
        if options.tables and source.name not in options.tables:
            continue
        for split in range(options.first, options.first + options.splits):
            try:
                table, fit_rows, new_rows = divided(source, split, options.rows)
            except FileNotFoundError:
                print(f"{source.name}: not there")
                break
            seconds = done.get((source.name, split, "ours"), 0.0)
            for tool in ("ours", *peers):
                if (source.name, split, tool) in done:
                    continue
                rows = (fit_rows, new_rows)
                if tool == "ours":
                    found = ours(table, *rows, options.minutes)
                    seconds = found["seconds"]
                else:
                    limit = max(10.0, seconds)
                    found = theirs(tool, peers[tool], table, rows, split, limit)
                line = {"table": source.name, "split": split, "tool": tool, "task": table.task}
                line |= {"chosen": found["chosen"], "seconds": found["seconds"]}
                line |= scored(table, new_rows, found)
                if options.out is not None:
                    with options.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                yield line


def told(found: list[dict[str, Any]]) -> None:
    """A row for each table, and the mean ranks."""
    ranks: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in dict.fromkeys(one["table"] for one in found):
        of_table = [one for one in found if one["table"] == name]
        metrics = (
            ("error", "log loss") if of_table[0]["task"] == "classification" else ("error", "width")
        )
        for metric in metrics:
            by_tool = defaultdict(dict)
            for one in of_table:
                by_tool[one["tool"]][one["split"]] = one[metric]
            means = {tool: float(np.mean(list(kept.values()))) for tool, kept in by_tool.items()}
            best = min(means, key=lambda tool: math.inf if math.isnan(means[tool]) else means[tool])
            order = sorted(means, key=lambda tool: (math.isnan(means[tool]), means[tool]))
            for place, tool in enumerate(order, 1):
                ranks[metric][tool].append(place)
            both = sorted(by_tool["ours"].keys() & by_tool[best].keys())
            gap = np.array([by_tool["ours"][s] - by_tool[best][s] for s in both])
            spread = gap.std(ddof=1) / math.sqrt(len(gap)) if len(gap) > 1 else math.nan
            chosen = ", ".join(sorted({o["chosen"] for o in of_table if o["tool"] == "ours"}))
            row = "  ".join(f"{tool} {means[tool]:.4g}" for tool in order)
            print(f"{name:15} {metric:8} {row}")
            print(f"{'':24} ours ({chosen}) behind {best}: {gap.mean():+.4g} ± {spread:.2g}")
    for metric, of_tools in ranks.items():
        means = {tool: float(np.mean(places)) for tool, places in of_tools.items()}
        row = "  ".join(
            f"{tool} {means[tool]:.2f}" for tool in sorted(means, key=means.__getitem__)
        )
        print(f"mean rank by {metric}: {row}")
    taken = {(one["table"], one["split"], one["tool"]): one["seconds"] for one in found}
    for tool in dict.fromkeys(one["tool"] for one in found):
        ratios = [
            seconds / taken[(*where, "ours")]
            for (*where, by), seconds in taken.items()
            if by == tool and (*where, "ours") in taken
        ]
        if ratios:
            low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
            print(f"CPU time of {tool} / ours: {middle:.2f} ({low:.2f} to {high:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--minutes", type=float, help="as surelearn audit has it, for ours")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    options = parser.parse_args()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in run(options):
            found.append(line)
            print(json.dumps(line), flush=True)
    told(found)


if __name__ == "__main__":
    main()
