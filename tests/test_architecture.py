"""The direction of imports, and what a bare import may load."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import surelearn

SOURCE = Path(surelearn.__file__).parent
HEAVY = ("sklearn", "pandas", "numba", "torch", "polars", "matplotlib", "joblib", "click", "rich")

# Every room, from the ground up: a room may import the rooms named here, and itself.
MAY_IMPORT = {
    "version": set(),
    "__init__": {
        "attacks", "attribution", "auditing", "boosting", "bounds", "certificate", "certification", "claim",
        "cluster", "data", "jobs", "kernel", "linear", "measurement", "monitoring", "neural", "operating", "optim", "papers",
        "persistence", "planning", "report", "robust", "selection", "subject", "training", "version",
    },
    "plain": set(),
    "lacking": set(),
    "renamed": set(),
    "stated": set(),
    "types": set(),
    "earlier": set(),
    "record": {"claim", "lacking", "plain"},
    "documents": {"files", "plain", "types"},
    "claim": {"documents", "earlier", "lacking", "plain", "stated"},
    "losses": {"types"},
    "bounds": {"claim", "losses", "types"},
    "seeds": {"types"},
    "keys": {"record"},
    "fingerprint": {"earlier", "keys", "seeds", "subject", "types"},
    "profiles": {"types"},
    "subject": {"documents", "earlier", "keys", "lacking", "losses", "profiles", "seeds", "types"},
    "processes": set(),
    "unpacking": set(),
    "jobs": {"lacking", "processes"},
    "files": set(),
    "neural": {"base", "earlier", "files", "jobs", "lacking", "record", "stated", "subject", "types"},
    "attacks": {"bounds", "earlier", "lacking", "losses", "profiles", "stated", "subject", "types"},
    "attribution": {"earlier", "lacking", "profiles", "stated", "subject", "types"},
    "robust": {
        "attacks", "base", "bounds", "certificate", "claim", "fingerprint", "lacking", "losses", "neural", "plain",
        "record", "stated", "subject", "types",
    },
    "operating": {"bounds", "lacking", "subject", "types"},
    "measurement": {"lacking", "operating", "subject", "types"},
    "slicing": {"measurement", "types"},
    "quantities": {"measurement", "operating"},
    "certificate": {
        "bounds", "claim", "documents", "fingerprint", "lacking", "measurement", "operating", "plain", "record",
        "renamed", "slicing", "stated", "subject", "types",
    },
    "base": {"certificate", "earlier", "fingerprint", "record", "seeds", "subject", "types"},
    "kernel": {
        "base", "bounds", "data", "earlier", "lacking", "optim", "profiles", "record", "stated", "subject", "types",
    },
    "optim": {"base", "bounds", "claim", "earlier", "lacking", "losses", "neural", "record", "stated", "subject", "types"},
    "linear": {
        "base", "bounds", "certificate", "data", "earlier", "kernel", "lacking", "losses", "optim", "profiles",
        "record", "stated", "subject", "types",
    },
    "boosting": {"base", "bounds", "claim", "lacking", "record", "stated", "subject", "types"},
    "cluster": {"base", "bounds", "optim", "record", "stated", "subject", "types"},
    "training": {"base", "boosting", "certificate", "cluster", "fingerprint", "lacking", "linear", "record", "subject"},
    "certification": {
        "bounds", "certificate", "claim", "fingerprint", "lacking", "measurement", "operating", "plain", "quantities",
        "slicing", "stated", "subject", "types",
    },
    "data": {"claim", "documents", "files", "plain", "subject", "types", "unpacking"},
    "selection": {
        "boosting", "bounds", "claim", "documents", "files", "jobs", "kernel", "lacking", "linear", "losses",
        "measurement", "neural", "stated", "subject", "types",
    },
    "monitoring": {
        "bounds", "certificate", "claim", "documents", "files", "measurement", "plain", "slicing", "stated",
        "subject", "types",
    },
    "persistence": {
        "certificate", "data", "documents", "earlier", "files", "fingerprint", "kernel", "keys", "lacking",
        "processes", "seeds", "subject", "types", "unpacking", "version",
    },
    "report": {"bounds", "certificate", "claim", "documents", "lacking", "persistence", "plain", "renamed", "version"},
    "auditing": {
        "attacks", "attribution", "boosting", "bounds", "certificate", "certification", "claim", "data",
        "documents", "files", "fingerprint", "jobs", "kernel", "lacking", "linear", "losses", "measurement",
        "monitoring", "operating", "optim", "persistence", "plain", "planning", "prediction", "quantities",
        "renamed", "report", "robust", "selection", "slicing", "stated", "subject", "types", "version",
    },
    "papers": {
        "boosting", "bounds", "jobs", "kernel", "linear", "losses", "neural", "plain", "report", "selection", "subject",
        "types", "version",
    },
    "prediction": {"certificate", "claim", "data", "files", "operating", "persistence", "subject", "types"},
    "planning": {"bounds", "plain", "selection", "stated", "types"},
    "terminal": {"jobs", "plain", "processes"},
    "commands": {
        "auditing", "bounds", "certificate", "claim", "data", "documents", "files", "jobs", "lacking", "monitoring",
        "papers", "persistence", "plain", "planning", "prediction", "report", "selection", "subject", "terminal", "types",
        "version",
    },
    "cli": {"commands", "terminal", "version"},
}  # fmt: skip


def room(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports anywhere, also inside functions."""
    rooms = set()
    for node in ast.walk(parsed(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = (
                [node.module]
                if node.module != "surelearn"
                else [f"surelearn.{alias.name}" for alias in node.names]
            )
        rooms |= {name.split(".")[1] for name in names if name and name.startswith("surelearn.")}
    return rooms


def imported_modules(path: Path) -> set[str]:
    tree = ast.walk(parsed(path))
    return {node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module}


RENDERERS = ("audit", "axes", "charts", "drawing", "html", "markdown", "rows")


def test_the_table_lists_exactly_the_imports_in_use():
    """Neither an import that is not listed, nor one listed that nobody needs any more."""
    found = {name: set() for name in MAY_IMPORT}
    for path in sorted(SOURCE.rglob("*.py")):
        found.setdefault(room(path), set()).update(imported_rooms(path) - {room(path)})
    unlisted = {name: rooms - MAY_IMPORT.get(name, set()) for name, rooms in found.items()}
    dead = {name: rooms - found[name] for name, rooms in MAY_IMPORT.items()}
    assert not {name: rooms for name, rooms in unlisted.items() if rooms}
    assert not {name: rooms for name, rooms in dead.items() if rooms}


def test_the_order_has_no_circle():
    remaining = {name: set(below) for name, below in MAY_IMPORT.items()}
    while remaining:
        ground = {name for name, below in remaining.items() if not below & set(remaining)}
        assert ground, f"a circle among {sorted(remaining)}"
        for name in ground:
            del remaining[name]


# What one program has not loaded yet after each of these statements, in this order.
NOT_LOADED = {
    "import surelearn": {*HEAVY, "numpy", "scipy"},
    "import surelearn.bounds": set(HEAVY),
    "import surelearn.report": {"jinja2"},
    "import surelearn.monitoring": {"pandas", "matplotlib", "sklearn"},
    "from surelearn.cli import main": {"matplotlib", "sklearn", "torch"},
    "main(['plan', '--max-risk', '0.05'], standalone_mode=False)": {"matplotlib", "sklearn"},
    "surelearn.linear.Ridge": {"matplotlib", "torch"},
    "import surelearn.optim.descent": {"matplotlib"},
    "import surelearn.kernel, surelearn.kernel.eigenpro": {"torch"},
    "import surelearn.neural": {"torch"},
}


@pytest.fixture(scope="module")
def loaded_after() -> dict[str, set[str]]:
    """All that one program has loaded after each statement."""
    say = "print('loaded:', *{name.split('.')[0] for name in sys.modules})"
    code = "\n".join(["import sys", *(f"{statement}\n{say}" for statement in NOT_LOADED)])
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    said = [line for line in result.stdout.splitlines() if line.startswith("loaded: ")]
    return {
        statement: set(line.split()[1:]) for statement, line in zip(NOT_LOADED, said, strict=True)
    }


@pytest.mark.parametrize("statement", NOT_LOADED)
def test_nothing_is_loaded_before_it_is_needed(statement, loaded_after):
    assert not loaded_after[statement] & NOT_LOADED[statement]


def test_a_room_is_loaded_when_it_is_asked_for(loaded_after):
    assert {"numpy", "scipy"} <= loaded_after["import surelearn.bounds"]
    assert "sklearn" not in loaded_after["import surelearn.report"]
    assert "sklearn" in loaded_after["surelearn.linear.Ridge"]


def test_the_page_as_data_imports_none_of_its_renderers():
    assert not imported_modules(SOURCE / "report" / "document.py") & {
        f"surelearn.report.{name}" for name in RENDERERS
    }


def test_every_public_name_can_be_reached():
    for name in surelearn.__all__:
        assert getattr(surelearn, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = surelearn.nonsense


def test_rooms_are_attributes_and_every_learner_is_found_in_its_room():
    from surelearn.base import learners

    for learner in learners():
        room = learner.__module__.split(".")[1]
        assert room in dir(surelearn)
        assert getattr(getattr(surelearn, room), learner.__name__) is learner
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"commands"}
    assert rooms <= set(dir(surelearn))
    for room in rooms:
        home = getattr(surelearn, room)
        assert set(getattr(home, "__all__", ())) <= set(dir(home))


def classes_in(path: Path) -> list[str]:
    """Names of classes, those inside functions and other classes, too."""
    return [node.name for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)]


def test_a_class_name_is_used_once():
    """Private names of one file are its own; all others are found by their name."""
    where: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name in classes_in(path):
            if not name.startswith("_"):
                where.setdefault(name, []).append(path.relative_to(SOURCE).as_posix())
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_no_module_shares_a_name_with_a_public_function():
    modules = {path.stem for path in SOURCE.glob("*.py")} | {
        path.name for path in SOURCE.iterdir() if path.is_dir()
    }
    functions = {name for name in surelearn.__all__ if callable(getattr(surelearn, name))}
    assert not modules & functions


# The page asks Subjects, not classes. What still names a class or opens a model, with its reason:
# this list may only shrink.
AUDITED_CLASSES = {
    "fitting": {
        "AdaBoostClassifier": "it makes candidates",
        "DummyClassifier": "it makes candidates",
        "DummyRegressor": "it makes candidates",
        "FixedThresholdClassifier": "it makes one",
        "LeastSquares": "it makes candidates",
        "LogisticRegression": "it makes candidates",
        "PCA": "it makes candidates",
        "Pipeline": "a candidate that is one already is not prepared a second time",
    },
    "flow": {"hasattr predict": "whether the source is a model or a table"},
    "sections/kernel_machine": {"getattr bandwidth": "of a kernel, not of a model"},
    "sections/poisoning/influence": {
        "getattr bootstrap": "a forest is given weights so that it draws the same rows",
        "getattr probability": "whether a seed may change the fit",
    },
    "sections/poisoning/votes": {
        "PartitionClassifier": "the section is about this one learner's certificate"
    },
    "sections/robustness/work": {"SmoothedClassifier": "it makes one"},
    "seen": {
        "__name__": "of tables, in a sentence",
        "hasattr get_params": "seeds are set where there are parameters",
    },
    "single_rows": {"__name__": "of an exception, in a sentence"},
}
OF_DATA = {"iloc", "columns", "toarray", "tocsr", "shape", "to_pandas", "vstack"}
LEARNERS = (
    "sklearn",
    "surelearn.boosting",
    "surelearn.cluster",
    "surelearn.kernel",
    "surelearn.linear",
    "surelearn.optim",
)


def asked_of_classes(path: Path) -> set[str]:
    """Comparisons of types, names of classes, learners by name, and attributes that models are
    asked for.
    """
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Compare):
            parts = [part for part in (node.left, *node.comparators) if isinstance(part, ast.Call)]
            found |= {
                "type(…) is"
                for part in parts
                if isinstance(part.func, ast.Name) and part.func.id == "type"
            }
        elif isinstance(node, ast.Attribute) and node.attr == "__name__":
            found.add("__name__")
        elif isinstance(node, ast.ImportFrom) and node.module:
            constants = node.module.startswith("surelearn.")
            names = {alias.name for alias in node.names if alias.name[0].isupper()}
            names = {name for name in names if not (constants and name.isupper())}
            ours = {name for name in names if name.endswith(("Classifier", "Regressor"))}
            found |= names if node.module.startswith(LEARNERS) else ours
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("hasattr", "getattr")
        ):
            asked = node.args[1]
            if isinstance(asked, ast.Constant) and asked.value not in OF_DATA:
                found.add(f"{node.func.id} {asked.value}")
    return found


def audited(path: Path) -> str:
    return path.relative_to(SOURCE / "auditing").with_suffix("").as_posix()


@pytest.mark.parametrize("path", sorted((SOURCE / "auditing").rglob("*.py")), ids=audited)
def test_the_page_asks_subjects_not_classes(path):
    listed = set(AUDITED_CLASSES.get(audited(path), {}))
    found = asked_of_classes(path)
    assert found <= listed, (
        "ask a Subject, or let the model's class describe itself in surelearn.subject"
    )
    assert listed <= found, "no longer there: take it off the list"


def test_the_scan_sees_what_it_looks_for(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from sklearn.svm import SVC\nif type(x) is SVC or hasattr(x, 'coef_'):\n   "
        " type(x).__name__\n"
    )
    assert asked_of_classes(bad) == {"SVC", "type(…) is", "hasattr coef_", "__name__"}


# What cannot be answered is a `Lacking`, returned. An exception says that an argument, a file or a
# task of the user is wrong. Classes of exceptions, each with its reason: this list may only shrink.
EXCEPTIONS = {
    "auditing/options": {"OptionError": "an option that a user states wrongly"},
    "data/columns": {
        "DataError": "a table that cannot be read as it is",
        "NotCountableError": "a file that must be read whole for what is asked",
    },
    "data/pieces": {"BadLineError": "a line of a file, whose number its reader adds"},
    "documents": {"_LimitError": "the parser of JSON is stopped from inside its hooks"},
    "fingerprint": {"_UnhashableError": "pickle is stopped from inside its hooks"},
    "jobs/tasks": {"TaskError": "a task that raised, by its key"},
    "linear/svm/machine": {"InfeasibleError": "rows that no hyperplane separates, with a witness"},
    "measurement/given": {"LossBoundError": "a bound that a user stated and the rows contradict"},
    "optim/dp_gradients": {"NotOnceError": "torch's forward pass is stopped from inside its hooks"},
    "persistence/learners": {"_RefusedPartError": "a file that holds what is not loaded"},
    "persistence/modules": {"ModuleMismatchError": "a module that is not the one that was saved"},
}
RAISED = ("Exception", "Error", "Warning", "StopIteration", "KeyboardInterrupt")


def exceptions_in(path: Path) -> set[str]:
    """Classes that derive from an exception, by the names of their bases."""
    tree = parsed(path)
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(RAISED) for base in node.bases)
    }


def test_no_answer_is_an_exception():
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).with_suffix("").as_posix()
        new = exceptions_in(path) - set(EXCEPTIONS.get(where, {}))
        assert not new, f"{where}: return a Lacking instead of raising {', '.join(sorted(new))}"


def test_nothing_is_caught_in_place_of_a_lacking():
    """Reasons are read from a `Lacking`, not from an exception that the library raised itself.

    In the page's rooms a model's own exceptions are caught in one place, `writing.attempt`, and
    where a model may not be of the form that is tried.
    """
    allowed = {"auditing/writing": 1}
    for path in sorted((SOURCE / "auditing").rglob("*.py")):
        where = path.relative_to(SOURCE).with_suffix("").as_posix()
        broad = [
            node
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ExceptHandler)
            and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        ]
        assert len(broad) <= allowed.get(where, 0), where
