# ruff: noqa: S301 - hostile on purpose
"""Files that make a marker when they are opened in a naive way, for the tests of loading models.

A case says where its content is put ("path": given as the model; "manifest", "skops",
"safetensors": a file of a model's folder, with the hashes that fit; "changes": to a learner's
manifest), and who falls for it.
"""

import importlib
import io
import json
import pickle
import pickletools
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import scipy.sparse
import sklearn
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

EVIL = "module_that_makes_a_marker"


@dataclass(frozen=True)
class Case:
    place: str
    make: Callable[[str], Any]  # from the path of the marker to content
    fall_for: Callable[[Any], Any] | None  # None: nobody is known to
    says: str
    name: str = ""


def code(marker):
    return f"open({marker!r}, 'w').close()"


def evil_module(marker):
    """Source that does harm as soon as it is imported."""
    return f"{code(marker)}\n\n\nclass Model:\n    def __init__(self, *_, **__):\n        pass\n"


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return exec, (code(self.marker),)


# --------------------------------------------------------------------------------------------- pick


def pickled(protocol):
    return lambda marker: pickle.dumps({"model": Payload(marker)}, protocol)


def by_inst(marker):
    return f'(S"{code(marker)}"\nibuiltins\nexec\n.'.encode()


def by_obj(marker):
    return f'(cbuiltins\nexec\nS"{code(marker)}"\no.'.encode()


def inside_a_model(marker):
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    model.coef_ = Payload(marker)
    return pickletools.optimize(pickle.dumps(model))


def dumped(compress):
    def make(marker):
        buffer = io.BytesIO()
        joblib.dump(Payload(marker), buffer, compress=compress)
        return buffer.getvalue()

    return make


def zipped(*entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def torch_zip(marker):
    return zipped(
        ("archive/data.pkl", pickle.dumps(Payload(marker), 2)), ("archive/version", "3\n")
    )


def npy(marker):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def npz(marker):
    buffer = io.BytesIO()
    np.savez(buffer, format=np.array([Payload(marker)], dtype=object))
    return buffer.getvalue()


def load_joblib(content):
    joblib.load(io.BytesIO(content))


def load_torch(content):
    pickle.loads(entry(content, "archive/data.pkl"))


def load_numpy(content):
    made = np.load(io.BytesIO(content), allow_pickle=True)
    return made if isinstance(made, np.ndarray) else made["format"]


def entry(content, name):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(name)


PICKLES = {
    **{
        f"pickle of protocol {protocol}": ("model.pkl", pickled(protocol), pickle.loads)
        for protocol in range(6)
    },
    "pickle by INST": ("model.pickle", by_inst, pickle.loads),
    "pickle by OBJ": ("model.pickle", by_obj, pickle.loads),
    "pickle inside a model": ("model.pkl", inside_a_model, pickle.loads),
    "joblib": ("model.joblib", dumped(0), load_joblib),
    **{
        f"joblib by {how}": (f"model.{how}", dumped((how, 3)), load_joblib)
        for how in ("gzip", "zlib", "bz2", "xz", "lzma")
    },
    "zlib, little": ("model.z", dumped(("zlib", 1)), load_joblib),
    "torch.save": ("model.pt", torch_zip, load_torch),
    "array of objects": ("model.npy", npy, load_numpy),
    "archive of arrays of objects": ("model.npz", npz, load_numpy),
}
SAYS = {
    "path": "a folder written by surelearn.save is needed",
    "manifest": "manifest.json is .*, not JSON",
    "skops": "never opened as a model",
    "safetensors": "is damaged: SafetensorError",
}


# --------------------------------------------------------------------------------------------------


def node(loader, name, **rest):
    module, _, cls = name.rpartition(".")
    return {"__class__": cls, "__module__": module, "__loader__": loader, **rest}


def plain(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def sequence(*items, kind="tuple"):
    return node(f"{kind.capitalize()}Node", f"builtins.{kind}", content=list(items))


def mapping(content, key_types=None):
    key_types = key_types or [node("TypeNode", "builtins.str") for _ in content]
    return node(
        "DictNode", "builtins.dict", content=content, key_types=sequence(*key_types, kind="list")
    )


def deep(value):
    return (
        mapping({key: deep(item) for key, item in value.items()})
        if isinstance(value, dict)
        else plain(value)
    )


def calling(function, argument):
    """A dictionary whose key is made by a call."""
    return mapping({argument: plain(0)}, [function])


def function(name):
    return node("FunctionNode", name)


def partial(made_by, *arguments):
    content = {
        "func": made_by,
        "args": sequence(*arguments),
        "kwds": mapping({}),
        "namespace": plain(None),
    }
    return node("PartialNode", "functools.partial", content=content)


def generator(name, bits):
    content = {
        "bit_generator": deep({**np.random.PCG64(0).state, "bit_generator": bits}),
        "seed_seq": mapping({}),
    }
    return node("RandomGeneratorNode", name, content=content)


def schema_of(name, protocol=2, **parts):
    """A model of scikit-learn with these parts."""
    parts["_sklearn_version"] = plain(sklearn.__version__)
    return json.dumps(
        {
            **node("ObjectNode", name, content=mapping(parts)),
            "protocol": protocol,
            "_skops_version": "0.16",
        }
    )


def archive(part, *entries, protocol=2):
    """How to make a logistic regression with a hostile part: its schema last, other entries
    before.
    """
    schema = schema_of("sklearn.linear_model._logistic.LogisticRegression", protocol, C=part)

    def make(marker):
        before = [(name, content(marker)) for name, content in entries]
        return zipped(*before, ("schema.json", schema.replace(MARKER, marker)))

    return make


def words(marker):
    buffer = io.BytesIO()
    np.save(buffer, np.array(["touch", marker]))
    return buffer.getvalue()


def harmless_schema(marker):
    return entry(archive(plain(1.0))(marker), "schema.json")


def function_pipeline(marker):
    model = make_pipeline(
        FunctionTransformer(joblib.dump, kw_args={"filename": marker}), LogisticRegression()
    )
    model[-1].fit([[0.0], [1.0]], [0, 1])
    return skops.io.dumps(model)


def trust_everything(content):
    """What someone does who trusts all that skops asks about."""
    return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))


MARKER = "path-of-the-marker"
CODE = code(MARKER)
TOUCH = [plain("touch"), plain(MARKER)]
EXEC, TYPE_EXEC = function("builtins.exec"), node("TypeNode", "builtins.exec")
PATH = node("ConstructorFromReduceNode", "pathlib.PosixPath", content=sequence(plain(MARKER)))
REDUCED = {"__reduce__": {"args": sequence(plain(CODE))}, "content": mapping({})}
FACTORY = {"main": mapping({}), "default_factory": partial(EXEC, plain(CODE))}
FIRST_PROTOCOL = node(
    "FunctionNode", "numpy.add", content={"module_path": "builtins", "function": "exec"}
)
ARRAY = {"type": "numpy", "file": "a.npy"}
SPARSE = node(
    "SparseMatrixNode", f"{scipy.sparse.spmatrix.__module__}.spmatrix", type="scipy", file="a.npz"
)

# Parts that are refused for a name in them; whoever trusts every name falls for them.
PARTS = {
    "function as the type of a key": calling(EXEC, CODE),
    "type as the type of a key": calling(TYPE_EXEC, CODE),
    "eval": calling(function("builtins.eval"), CODE),
    "os.system": calling(function("os.system"), f"touch '{MARKER}'"),
    "list that is a call": node("ListNode", "subprocess.call", content=TOUCH),
    "set that is a call": node("SetNode", "subprocess.call", content=TOUCH),
    "tuple of an evil module": node("TupleNode", f"{EVIL}.Model", content=[]),
    "object of an evil module": node("ObjectNode", f"{EVIL}.Model", content=mapping({})),
    "type of an evil module": node("TypeNode", f"{EVIL}.Model"),
    "random state of an evil module": node("RandomStateNode", f"{EVIL}.Model", content=mapping({})),
    "generator of an evil module": generator(f"{EVIL}.Model", "PCG64"),
    "constructor": node(
        "ConstructorFromReduceNode", "builtins.exec", content=sequence(plain(CODE))
    ),
    "loss": node("LossNode", "builtins.exec", **REDUCED),
    "partial": calling(partial(function("os.symlink"), plain(".")), MARKER),
    "method": calling(
        node("MethodNode", "pathlib.PosixPath", content={"func": "write_text", "obj": PATH}), "x"
    ),
    "operator": node("OperatorFuncNode", "operator.call", attrs=sequence(EXEC, plain(CODE))),
    "two parts of one number": sequence(
        {**EXEC, "__id__": 7}, calling(node("TypeNode", "builtins.str", __id__=7), CODE)
    ),
    "part that is another": sequence(
        {**EXEC, "__id__": 7}, calling(node("CachedNode", "builtins.str", __id__=7), CODE)
    ),
}
UNLISTED = "is not on the list of types that are loaded"
NOT_LOADED = "cannot be loaded"

# name: how it is made, who falls for it, what the refusal says
ARCHIVES = {
    **{name: (archive(part), trust_everything, UNLISTED) for name, part in PARTS.items()},
    "process": (
        archive(
            node(
                "ConstructorFromReduceNode",
                "subprocess.Popen",
                content=sequence(sequence(*TOUCH, kind="list")),
            )
        ),
        lambda content: trust_everything(content).C.wait(),
        UNLISTED,
    ),
    "default of a dictionary": (
        archive(node("DefaultDictNode", "collections.defaultdict", content=FACTORY)),
        lambda content: trust_everything(content).C["x"],
        UNLISTED,
    ),
    "function in a pipeline": (
        function_pipeline,
        lambda content: trust_everything(content).predict(np.zeros((2, 1))),
        UNLISTED,
    ),
    "function of the first protocol": (
        archive(calling(FIRST_PROTOCOL, CODE), protocol=0),
        trust_everything,
        UNLISTED,
    ),
    "schema that is there twice": (
        archive(calling(EXEC, CODE), ("schema.json", harmless_schema)),
        trust_everything,
        UNLISTED,
    ),
    "array that is a call": (
        archive(node("NdArrayNode", "subprocess.call", **ARRAY), ("a.npy", words)),
        trust_everything,
        UNLISTED,
    ),
    "array of objects": (
        archive(node("NdArrayNode", "numpy.ndarray", **ARRAY), ("a.npy", npy)),
        lambda content: load_numpy(entry(content, "a.npy")),
        NOT_LOADED,
    ),
    "pickle called array": (
        archive(node("NdArrayNode", "numpy.ndarray", **ARRAY), ("a.npy", pickled(4))),
        lambda content: load_numpy(entry(content, "a.npy")),
        NOT_LOADED,
    ),
    "sparse matrix of objects": (
        archive(SPARSE, ("a.npz", npz)),
        lambda content: load_numpy(entry(content, "a.npz")),
        NOT_LOADED,
    ),
    "pickle called schema": (
        lambda marker: zipped(("schema.json", pickled(4)(marker))),
        lambda content: pickle.loads(entry(content, "schema.json")),
        "never opened as a model",
    ),
    "tree that is a call": (archive(node("TreeNode", "builtins.exec", **REDUCED)), None, UNLISTED),
    "operator of another module": (
        archive(node("OperatorFuncNode", "os.system", attrs=sequence(plain(f"touch '{MARKER}'")))),
        None,
        "never opened as a model .*Expected module 'operator'",
    ),
    "generator of other bits": (
        archive(generator("numpy.random._generator.Generator", "seed")),
        None,
        UNLISTED,
    ),
    "JSON that claims to be a function": (
        archive(calling(node("JsonNode", "os.system", content='"x"'), f"touch '{MARKER}'")),
        None,
        NOT_LOADED,
    ),
    "slice that claims to be a function": (
        archive(
            node("SliceNode", "os.system", content={"start": CODE, "stop": None, "step": None})
        ),
        None,
        "not the one that was saved",
    ),
    "trusted name cut elsewhere": (
        archive(
            {"__module__": "sklearn", "__class__": "pipeline.Pipeline", "__loader__": "ObjectNode"}
        ),
        None,
        NOT_LOADED,
    ),
    "name that moves the cursor": (
        archive(function("os.\x1b[2J\nsystem")),
        None,
        r"holds os\.\?\[2J, which",
    ),
}


# --------------------------------------------------------------------------------------------------


def changes(**to):
    return lambda marker: json.loads(json.dumps(to).replace(MARKER, marker))


def value(plain_value):
    return changes(parameters={"n_features": plain_value})


def make_class(changed):
    """What someone does who makes whatever class a manifest names."""
    module, _, name = changed["class"].rpartition(".")
    getattr(importlib.import_module(module), name)(*changed["parameters"].values())


NO_LEARNER = "is no learner of this surelearn"
BESIDE = "surelearn.selection.preparation.make_pipeline"
LEARNERS = {
    "exec": (
        changes(**{"class": "builtins.exec", "parameters": {"source": CODE}}),
        make_class,
        NO_LEARNER,
    ),
    "os.mkdir": (
        changes(**{"class": "os.mkdir", "parameters": {"path": MARKER}}),
        make_class,
        NO_LEARNER,
    ),
    "evil module": (
        changes(**{"class": f"{EVIL}.Model", "parameters": {}}),
        make_class,
        NO_LEARNER,
    ),
    "function beside a learner": (changes(**{"class": BESIDE, "parameters": {}}), None, NO_LEARNER),
    "key that is a path": (changes(**{"class": f"{EVIL}/1", "parameters": {}}), None, NO_LEARNER),
    "key of nobody": (changes(**{"class": "evil-model/1", "parameters": {}}), None, NO_LEARNER),
    "list of names": (
        changes(**{"class": ["os.mkdir"], "parameters": {"path": MARKER}}),
        None,
        "class must be a name",
    ),
    "list of parameters": (changes(parameters=[CODE]), None, "is damaged"),
    "empty value": (value({}), None, "is damaged: StopIteration"),
    "unknown kind of value": (
        value({"eval": CODE}),
        None,
        "is damaged: unknown kind of value 'eval'",
    ),
    "number too large for its type": (
        value({"scalar": 10**6, "type": "|i1"}),
        None,
        "is damaged: OverflowError",
    ),
    "array that is not there": (value({"array": "../a"}), None, "is damaged: KeyError"),
    "object as a type": (value({"scalar": CODE, "type": "O"}), None, "not the one that was saved"),
    "method as a value": (
        changes(parameters={"predict": CODE}),
        None,
        "not the one that was saved",
    ),
}

CASES = {
    **{
        f"{kind} as {place}": Case(place, make, fall_for, SAYS[place], name)
        for kind, (name, make, fall_for) in PICKLES.items()
        for place in SAYS
    },
    "Python as manifest": Case(
        "manifest", lambda marker: code(marker).encode(), eval, SAYS["manifest"]
    ),
    "archive as path": Case(
        "path", ARCHIVES["constructor"][0], trust_everything, "a zip archive", "model.skops"
    ),
    **{f"archive: {kind}": Case("skops", *case) for kind, case in ARCHIVES.items()},
    **{f"learner: {kind}": Case("changes", *case) for kind, case in LEARNERS.items()},
}
