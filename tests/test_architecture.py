"""The direction of imports, and what a bare import may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import surelearn

SOURCE = Path(surelearn.__file__).parent
HEAVY = ("sklearn", "pandas", "numba", "torch", "polars", "matplotlib", "joblib", "click", "rich")

# Every room, from the ground up: a room may import the rooms named here, and itself.
MAY_IMPORT = {
    "version": set(),
    "__init__": {
        "version", "auditing", "bounds", "certificate", "certification", "claim", "monitoring", "persistence", "planning",
        "report", "selection",
    },
    "plain": set(),
    "documents": {"files"},
    "claim": {"documents", "plain"},
    "bounds": {"claim"},
    "seeds": set(),
    "fingerprint": {"seeds"},
    "profiles": set(),
    "adapters": {"profiles", "seeds"},
    "processes": set(),
    "unpacking": set(),
    "jobs": {"processes"},
    "files": set(),
    "attacks": {"adapters", "profiles"},
    "attribution": {"adapters", "profiles"},
    "robust": {"adapters", "attacks", "base", "bounds", "certificate", "claim", "fingerprint"},
    "measurement": {"adapters"},
    "slicing": {"measurement"},
    "certificate": {"bounds", "claim", "documents", "fingerprint", "measurement", "plain", "slicing"},
    "base": {"adapters", "bounds", "certificate", "claim", "fingerprint"},
    "kernel": {"base", "bounds", "certificate", "claim", "optim", "profiles"},
    "optim": {"base", "bounds", "certificate", "claim"},
    "linear": {"adapters", "base", "bounds", "certificate", "claim", "data", "kernel", "optim", "unpacking"},
    "boosting": {"adapters", "base", "bounds", "certificate", "claim", "optim"},
    "cluster": {"base", "bounds", "certificate", "claim", "optim"},
    "certification": {"adapters", "bounds", "certificate", "claim", "fingerprint", "measurement", "slicing"},
    "data": {"adapters", "claim", "documents", "files", "plain", "unpacking"},
    "selection": {
        "adapters", "boosting", "bounds", "claim", "documents", "files", "jobs", "kernel", "linear", "measurement",
    },
    "monitoring": {
        "adapters", "bounds", "certificate", "claim", "data", "documents", "files", "fingerprint", "measurement", "plain",
        "slicing",
    },
    "persistence": {
        "certificate", "data", "documents", "files", "fingerprint", "kernel", "plain", "seeds", "unpacking", "version",
    },
    "report": {"certificate", "claim", "documents", "plain", "version"},
    "auditing": {
        "adapters", "attacks", "attribution", "boosting", "bounds", "certificate", "certification", "claim", "data",
        "documents", "files", "fingerprint", "jobs", "kernel", "linear", "measurement", "monitoring", "optim", "persistence",
        "plain", "report", "robust", "selection", "slicing", "version",
    },
    "papers": {
        "adapters", "auditing", "boosting", "bounds", "certificate", "certification", "claim", "data", "files", "jobs",
        "kernel", "linear", "plain", "report", "selection", "version",
    },
    "prediction": {"adapters", "certificate", "claim", "data", "files", "persistence", "plain"},
    "planning": {"bounds", "plain", "selection"},
    "terminal": {"jobs", "plain", "processes"},
    "commands": {
        "adapters", "auditing", "bounds", "certificate", "certification", "claim", "data", "documents", "files",
        "fingerprint", "jobs", "monitoring", "papers", "persistence", "plain", "planning", "prediction", "report",
        "selection", "terminal", "version",
    },
    "cli": {"commands", "terminal", "version"},
}  # fmt: skip


def room(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports anywhere, also inside functions."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module] if node.module != "surelearn" else [f"surelearn.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name and name.startswith("surelearn.")}
    return rooms


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    assert imported_rooms(path) - {room(path)} <= MAY_IMPORT[room(path)]


def test_the_order_has_no_circle():
    remaining = {name: set(below) for name, below in MAY_IMPORT.items()}
    while remaining:
        ground = {name for name, below in remaining.items() if not below & set(remaining)}
        assert ground, f"a circle among {sorted(remaining)}"
        for name in ground:
            del remaining[name]


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return {name.split(".")[0] for name in result.stdout.split()}


def test_a_bare_import_loads_nothing_heavy():
    assert not loaded_after("import surelearn") & {*HEAVY, "numpy", "scipy"}


def test_theorems_load_numpy_and_scipy_only():
    loaded = loaded_after("import surelearn.bounds")
    assert not loaded & set(HEAVY)
    assert {"numpy", "scipy"} <= loaded


def test_every_public_name_can_be_reached():
    for name in surelearn.__all__:
        assert getattr(surelearn, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = surelearn.nonsense


def test_no_module_shares_a_name_with_a_public_function():
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    functions = {name for name in surelearn.__all__ if callable(getattr(surelearn, name))}
    assert not modules & functions
