"""Models in files of other libraries: what they answer, and what is refused."""

import io
import json
import os
import pickle
import struct

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from surelearn import save
from surelearn.data.columns import DataError
from surelearn.persistence.model_files import READERS, as_model_file, is_model, read_model_file
from surelearn.persistence.model_files.model_file import of_outputs
from surelearn.persistence.model_files.onnx_text import read_graph

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["age", "dose", "blood pressure"])
CODES = (X["age"] + X["dose"] > 0).astype(int).to_numpy() + (X["age"] > 1).to_numpy()  # 0, 1, 2
NUMBERS = (X["age"] - 2 * X["dose"]).to_numpy()


def said(file, rows=X):
    return file.answer(rows, "rows.csv")[1]


# ── the same answers as in memory ────────────────────────────────────────────────────────────────


def skops_file(path):
    import skops.io

    model = LogisticRegression().fit(X, CODES)
    skops.io.dump(model, path / "m.skops")
    return path / "m.skops", model


def saved_folder(path):
    model = LogisticRegression().fit(X, CODES)
    return save(model, path / "kept"), model


def lightgbm_file(path):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, min_child_samples=3).fit(X, CODES)
    model.booster_.save_model(path / "m.txt")
    return path / "m.txt", model


def xgboost_file(path, name="m.json"):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(X, CODES)
    model.save_model(path / name)
    return path / name, model


def xgboost_binary(path):
    return xgboost_file(path, "m.ubj")


def xgboost_stopped(path):
    """Early stopping: answers are those of the best round."""
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(
        n_estimators=60, n_jobs=1, early_stopping_rounds=40, learning_rate=1.0
    )
    model.fit(X[:40], CODES[:40], eval_set=[(X[40:], RNG.permutation(CODES[40:]))], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    model.save_model(path / "s.json")
    return path / "s.json", model


def catboost_file(path):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False)
    model.fit(X, CODES).save_model(str(path / "m.cbm"))
    return path / "m.cbm", model


FILES = [
    skops_file,
    saved_folder,
    lightgbm_file,
    xgboost_file,
    xgboost_binary,
    xgboost_stopped,
    catboost_file,
]


@pytest.mark.parametrize("make", FILES)
def test_a_file_answers_as_the_model_in_memory(make, tmp_path):
    path, model = make(tmp_path)
    file = read_model_file(path)
    found = said(file)
    assert (file.task, file.outputs) == ("classification", 3)
    assert found.values.tolist() == np.ravel(model.predict(X)).astype(int).tolist()
    assert found.probabilities == pytest.approx(model.predict_proba(X), abs=1e-7)
    assert file.digest.startswith("sha256:")
    assert file.name == path.name


@pytest.mark.parametrize("objective", ["regression", "poisson", "quantile"])
def test_numbers_of_lightgbm(objective, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=5, objective=objective, verbose=-1)
    model.fit(X, np.abs(NUMBERS)).booster_.save_model(tmp_path / "m.lgb")
    file = read_model_file(tmp_path / "m.lgb")
    assert file.task == "regression"
    assert said(file).values == pytest.approx(model.predict(X))


@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson"])
def test_numbers_of_xgboost(objective, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=5, objective=objective, n_jobs=1)
    model.fit(X, np.abs(NUMBERS)).save_model(tmp_path / "m.json")
    assert said(read_model_file(tmp_path / "m.json")).values == pytest.approx(model.predict(X))


@pytest.mark.parametrize("loss", ["RMSE", "Poisson"])
def test_numbers_of_catboost(loss, tmp_path):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=5, loss_function=loss, verbose=0, allow_writing_files=False
    )
    model.fit(X, np.abs(NUMBERS)).save_model(str(tmp_path / "m.cbm"))
    assert said(read_model_file(tmp_path / "m.cbm")).values == pytest.approx(model.predict(X))


def test_outputs_of_xgboost_that_are_no_probabilities(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rows, two = xgboost.DMatrix(X.to_numpy(), CODES > 0), (CODES > 0).astype(int)
    reference = xgboost.train({"objective": "binary:logistic"}, rows, 5).predict(rows) > 0.5
    for objective in ("binary:logitraw", "binary:hinge"):
        booster = xgboost.train({"objective": objective}, rows, 5)
        booster.save_model(tmp_path / "m.json")
        found = said(read_model_file(tmp_path / "m.json"))
        assert found.probabilities is None
        assert np.mean(found.values == two) > 0.9
    assert np.mean(reference == two) > 0.9
    several = xgboost.DMatrix(X.to_numpy(), CODES)
    booster = xgboost.train({"objective": "multi:softmax", "num_class": 3}, several, 5)
    booster.save_model(tmp_path / "m.json")
    found = said(read_model_file(tmp_path / "m.json"))
    assert found.values.tolist() == booster.predict(several).astype(int).tolist()
    assert found.probabilities.sum(axis=1) == pytest.approx(1.0)


# ── ONNX ─────────────────────────────────────────────────────────────────────────────────────────


def onnx_model(nodes, inputs, outputs, constants=(), domain=True):
    """Bytes of a model; inputs and outputs as (name, type, shape)."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import helper

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), shape)

    graph = helper.make_graph(
        nodes,
        "g",
        [value(*one) for one in inputs],
        [value(*one) for one in outputs],
        list(constants),
    )
    opsets = [helper.make_opsetid("", 13)]
    opsets += [helper.make_opsetid("ai.onnx.ml", 1)] if domain else []
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def linear_node(model, labels, **more):
    from onnx import helper

    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    return helper.make_node(
        "LinearClassifier",
        ["X"],
        ["label", "p"],
        domain="ai.onnx.ml",
        coefficients=model.coef_.ravel().tolist(),
        intercepts=model.intercept_.tolist(),
        multi_class=1,
        post_transform="SOFTMAX",
        **{kind: labels},
        **more,
    )


def onnx_classifier(labels=("low", "middle", "high")):
    model = LogisticRegression().fit(X, CODES)
    kind = "STRING" if isinstance(labels[0], str) else "INT64"
    outputs = [("label", kind, [None]), ("p", "FLOAT", [None, 3])]
    return onnx_model(
        [linear_node(model, list(labels))], [("X", "FLOAT", [None, 3])], outputs
    ), model


def test_a_classifier_of_onnx_says_its_labels(tmp_path):
    content, model = onnx_classifier()
    (tmp_path / "m.onnx").write_bytes(content)
    file = read_model_file(tmp_path / "m.onnx")
    assert (file.classes, file.outputs) == (("low", "middle", "high"), 3)
    found = said(file)
    assert found.values.tolist() == model.predict(X).tolist()
    assert found.probabilities == pytest.approx(model.predict_proba(X), abs=1e-6)


def test_labels_of_onnx_that_are_numbers(tmp_path):
    content, model = onnx_classifier((7, 3, 5))
    (tmp_path / "m.onnx").write_bytes(content)
    file = read_model_file(tmp_path / "m.onnx")
    assert file.classes == (7, 3, 5)
    assert said(file).values.tolist() == model.predict(X).tolist()  # positions


def test_maps_of_onnx(tmp_path):
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    model = LogisticRegression().fit(X, CODES)
    labels = ["c", "a", "b"]
    mapped = helper.make_node(
        "ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_strings=labels
    )
    outputs = [("label", "STRING", [None])]
    content = onnx_model([linear_node(model, labels), mapped], [("X", "FLOAT", [None, 3])], outputs)
    import onnx

    made = onnx.load_from_string(content)
    element = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    made.graph.output.append(
        helper.make_value_info("maps", helper.make_sequence_type_proto(element))
    )
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    found = said(read_model_file(tmp_path / "m.onnx"))
    assert found.values.tolist() == model.predict(X).tolist()
    assert found.probabilities == pytest.approx(model.predict_proba(X), abs=1e-6)


def matrix(name, values):
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(values, dtype=np.float32), name)


@pytest.mark.parametrize("size", [None, 7])
def test_a_number_of_onnx_in_parts_of_a_fixed_size(size, tmp_path):
    pytest.importorskip("onnx")
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["X", "w"], ["Y"])]
    content = onnx_model(
        nodes,
        [("X", "FLOAT", [size, 3])],
        [("Y", "FLOAT", [size, 1])],
        [matrix("w", [[1], [-2], [0]])],
    )
    (tmp_path / "m.onnx").write_bytes(content)
    file = read_model_file(tmp_path / "m.onnx")
    found = file.answer(X, "rows.csv", "regression")[1]
    assert found.values == pytest.approx(NUMBERS, abs=1e-5)


def test_several_inputs_of_onnx_are_columns(tmp_path):
    pytest.importorskip("onnx")
    from onnx import helper

    nodes = [helper.make_node("Sub", ["dose", "age"], ["Y"])]
    inputs = [("dose", "FLOAT", [None, 1]), ("age", "FLOAT", [None, 1])]
    (tmp_path / "m.onnx").write_bytes(onnx_model(nodes, inputs, [("Y", "FLOAT", [None, 1])]))
    file = read_model_file(tmp_path / "m.onnx")
    found = file.answer(X, "rows.csv", "regression")[1]
    assert found.values == pytest.approx((X["dose"] - X["age"]).to_numpy(), abs=1e-6)
    with pytest.raises(
        DataError, match=r"rows.csv has no column 'dose', which m.onnx reads. Did you mean 'doses'"
    ):
        file.answer(X.rename(columns={"dose": "doses"}), "rows.csv", "regression")


@pytest.mark.parametrize("last", ["Sigmoid", "Identity"])
def test_one_output_of_onnx_is_a_probability_where_its_graph_says_so(last, tmp_path):
    pytest.importorskip("onnx")
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["X", "w"], ["z"]), helper.make_node(last, ["z"], ["s"])]
    nodes += [helper.make_node("Identity", ["s"], ["Y"])]
    content = onnx_model(
        nodes,
        [("X", "FLOAT", [None, 3])],
        [("Y", "FLOAT", [None, 1])],
        [matrix("w", [[3], [3], [0]])],
    )
    (tmp_path / "m.onnx").write_bytes(content)
    found = said(read_model_file(tmp_path / "m.onnx"))
    z = 3 * (X["age"] + X["dose"]).to_numpy()
    assert found.values.tolist() == (z > 0).astype(int).tolist()
    assert found.probabilities[:, 1] == pytest.approx(1 / (1 + np.exp(-z)), abs=1e-5)


def test_one_output_that_may_be_either_is_refused():
    with pytest.raises(ValueError, match=r"does not say whether that is a probability or a logit"):
        of_outputs(np.array([[0.2], [0.9]]))
    assert of_outputs(np.array([[-0.2], [0.9]])).values.tolist() == [0, 1]


def test_weights_in_other_files_are_refused(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["X", "w"], ["Y"])]
    weights = [matrix("w", np.ones((3, 400)))]
    content = onnx_model(nodes, [("X", "FLOAT", [None, 3])], [("Y", "FLOAT", [None, 400])], weights)
    model = onnx.load_from_string(content)
    onnx.save(
        model,
        str(tmp_path / "m.onnx"),
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    with pytest.raises(
        ValueError, match=r"keeps weights in other files, which its hash does not cover"
    ):
        read_model_file(tmp_path / "m.onnx")


def test_what_no_table_has_is_refused(tmp_path):
    pytest.importorskip("onnx")
    from onnx import helper

    nodes = [helper.make_node("Identity", ["X"], ["Y"])]
    shape = [None, 1, 8, 8]
    (tmp_path / "m.onnx").write_bytes(
        onnx_model(nodes, [("X", "FLOAT", shape)], [("Y", "FLOAT", shape)])
    )
    with pytest.raises(
        ValueError, match=r"has the shape . × 1 × 8 × 8: one tensor of rows × columns"
    ):
        read_model_file(tmp_path / "m.onnx")


def test_a_graph_inside_a_graph_inside_a_graph_is_refused():
    def message(number, inside):
        size, head = len(inside), bytes([number << 3 | 2])
        length = b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return head + length + bytes([size]) + inside

    content = b""
    for _ in range(30):
        content = message(1, message(5, message(6, content)))  # node, attribute, graph
    with pytest.raises(ValueError, match=r"nested more than 40 deep"):
        read_graph(message(7, content))


# ── torch ────────────────────────────────────────────────────────────────────────────────────────

NETS = """
from torch import nn

def make():
    return nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.9), nn.Linear(3, 3))

def fails():
    raise OSError("no network here")

def nothing():
    return 3
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    """A module of the user's in the working folder, and weights."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    name = f"nets_of_{os.urandom(4).hex()}"
    (tmp_path / f"{name}.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.9), torch.nn.Linear(3, 3)
    )
    module(torch.randn(50, 3))
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    return name, module.eval()


def test_a_module_with_weights(nets):
    import torch

    name, module = nets
    found = said(read_model_file(f"{name}:make", "w.safetensors"))
    with torch.no_grad():
        outputs = module(torch.tensor(X.to_numpy(), dtype=torch.float32))
    assert found.values.tolist() == outputs.argmax(dim=1).tolist()
    assert found.probabilities == pytest.approx(outputs.softmax(dim=1).numpy(), abs=1e-6)


def test_modules_that_are_none(nets, tmp_path):
    from safetensors.numpy import save_file

    name, _ = nets
    for factory, message in {
        f"{name}:make": "needs --weights FILE.safetensors",
        f"{name}:mak": f"{name} has no 'mak'",
        f"{name}:fails": "OSError: no network here",
        f"{name}:nothing": "must make a torch module, not a int",
        "no_such_module:make": "there is no module 'no_such_module' here",
    }.items():
        with pytest.raises(ValueError, match=message):
            read_model_file(factory, None if "needs" in message else "w.safetensors")
    save_file({"other": np.zeros(3)}, tmp_path / "o.safetensors")
    with pytest.raises(ValueError, match=r"--weights o.safetensors: the module has other weights"):
        read_model_file(f"{name}:make", "o.safetensors")
    (tmp_path / "w.pt").write_bytes(b"PK")
    with pytest.raises(
        ValueError, match=r"w.pt must be a .safetensors file: save the weights with"
    ):
        read_model_file(f"{name}:make", "w.pt")
    (tmp_path / "b.safetensors").write_bytes(struct.pack("<Q", 10**15) + b"{}")
    with pytest.raises(ValueError, match=r"b.safetensors is .*, not a safetensors file$"):
        read_model_file(f"{name}:make", "b.safetensors")
    with pytest.raises(ValueError, match=r"holds weights only: name the folder"):
        read_model_file("w.safetensors")


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


class OpenedError(Exception):
    """Raised by a pickle that is opened."""


class Trap:
    def __reduce__(self):
        return (_ran, ())


def _ran():
    raise OpenedError


PICKLES = ("m.pkl", "m.pickle", "m.joblib", "m.pt", "m.pth", "m.ckpt", "m.bin", "m.PKL")


@pytest.mark.parametrize("name", [*PICKLES, *(f"m{suffix}" for suffix in READERS)])
def test_a_pickle_is_never_opened_whatever_its_name(name, tmp_path):
    (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(
        ValueError, match=r"pickle.*could run code and is never opened: save it"
    ) as refused:
        read_model_file(tmp_path / name)
    assert len(str(refused.value).splitlines()) == 1


def test_a_zip_of_torch_under_another_name_is_never_opened(tmp_path):
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(2)}, buffer)
    (tmp_path / "m.onnx").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match=r"a zip archive, perhaps from torch.save.*never opened"):
        read_model_file(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "make", [skops_file, lightgbm_file, xgboost_file, xgboost_binary, catboost_file]
)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_half_a_file_is_refused(make, share, tmp_path):
    path, _ = make(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=path.name) as refused:
        read_model_file(path)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_half_an_onnx_file_is_refused(share, tmp_path):
    content, _ = onnx_classifier()
    (tmp_path / "m.onnx").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"m.onnx cannot be read as a model"):
        read_model_file(tmp_path / "m.onnx")


def test_files_that_are_too_large_are_not_read(tmp_path, monkeypatch):
    from surelearn.persistence.model_files import reading

    monkeypatch.setattr(reading, "memory", lambda: 2**20)
    for name in ("m.onnx", "m.txt", "m.json"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(2**21)
        with pytest.raises(ValueError, match=r"is larger than 1 MiB, which is not read"):
            read_model_file(tmp_path / name)


def test_a_lightgbm_model_of_pandas_categories_is_refused(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    rows = X.assign(city=pd.Categorical(np.where(CODES > 0, "x", "y")))
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(rows, CODES)
    model.booster_.save_model(tmp_path / "m.txt")
    with pytest.raises(ValueError, match=r"fitted on pandas categories"):
        read_model_file(tmp_path / "m.txt")


def test_a_lightgbm_model_of_categories_without_its_last_line_is_refused(tmp_path):
    """Without it, nobody knows whether codes are pandas' own."""
    lightgbm = pytest.importorskip("lightgbm")
    rows = X.assign(city=pd.Categorical(np.arange(80) % 2)).astype({"city": "category"})
    codes = np.arange(80) % 2
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, min_data_per_group=2, cat_smooth=1)
    text = model.fit(rows, codes).booster_.model_to_string()
    assert "num_cat=1" in text
    (tmp_path / "m.txt").write_text(text.partition("\npandas_categorical")[0] + "\n")
    with pytest.raises(ValueError, match=r"its last line, pandas_categorical, is missing"):
        read_model_file(tmp_path / "m.txt")


@pytest.mark.parametrize(
    "tail", ["[foo\nbar]\n[]\nxx\n[a: b: c]\n\n", "[a: 1]\n end of parametersX\n"]
)
def test_parameters_that_would_end_the_process_are_not_read(tail, tmp_path):
    """LightGBM 4.7 reads beyond lines that it does not know."""
    path, model = lightgbm_file(tmp_path)
    head, _, _ = path.read_text().partition("\nparameters:\n")
    path.write_text(f"{head}\nparameters:\n{tail}\nend of parameters\n")
    assert said(read_model_file(path)).values.tolist() == model.predict(X).tolist()


def test_an_xgboost_model_of_categories_is_refused(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rows = X.assign(city=pd.Categorical(np.where(CODES > 0, "x", "y")))
    model = xgboost.XGBClassifier(n_estimators=2, enable_categorical=True, n_jobs=1).fit(
        rows, CODES
    )
    model.save_model(tmp_path / "m.json")
    with pytest.raises(ValueError, match=r"fitted on categories"):
        read_model_file(tmp_path / "m.json")


def test_objectives_of_neither_classes_nor_numbers_are_refused(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rows = xgboost.DMatrix(X.to_numpy(), CODES, group=[40, 40])
    xgboost.train({"objective": "rank:pairwise"}, rows, 2).save_model(tmp_path / "m.json")
    with pytest.raises(
        ValueError, match=r"its objective is 'rank:pairwise': only classes and numbers"
    ):
        read_model_file(tmp_path / "m.json")


def test_json_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({"rows": [1, 2]}))
    with pytest.raises(ValueError, match=r"XGBoost's JSON is incomplete or damaged"):
        read_model_file(tmp_path / "m.json")


def test_a_type_that_is_not_trusted_is_refused(tmp_path):
    import skops.io
    from sklearn.preprocessing import FunctionTransformer

    skops.io.dump(FunctionTransformer(os.getcwd), tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"not on the list of types that are loaded"):
        read_model_file(tmp_path / "m.skops")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.onnx", "absent.onnx does not exist: name a model"),
        ("m.h5", "m.h5 is of a format that is not read: export it to ONNX"),
        ("m.abc", "m.abc is no model that is read: name a folder of surelearn.save"),
        ("mode.onnx", r"mode.onnx does not exist \(did you mean 'model.onnx'\?\)"),
    ],
)
def test_names_that_are_no_models(name, message, tmp_path):
    (tmp_path / "m.abc").write_text("x")
    (tmp_path / "model.onnx").write_text("x")
    (tmp_path / "m.h5").write_bytes(b"\x89HDF")
    with pytest.raises(ValueError, match=message):
        read_model_file(tmp_path / name)


def test_what_names_a_model(tmp_path):
    assert is_model(str(saved_folder(tmp_path)[0]))
    assert not is_model(str(tmp_path / "absent.csv"))
    assert not is_model("C:\\rows.csv")


# ── columns ──────────────────────────────────────────────────────────────────────────────────────


def test_columns_by_name_in_any_order_and_with_the_spaces_that_lightgbm_replaces(tmp_path):
    path, model = lightgbm_file(tmp_path)
    file = read_model_file(path)
    shuffled = X[["blood pressure", "age", "dose"]].assign(more="words")
    assert said(file, shuffled).values.tolist() == model.predict(X).tolist()


def test_columns_in_their_order_where_a_model_has_no_names(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X.to_numpy(), CODES)
    model.booster_.save_model(tmp_path / "m.txt")
    file = read_model_file(tmp_path / "m.txt")
    assert (
        said(file, X.assign(city="words")).values.tolist() == model.predict(X.to_numpy()).tolist()
    )
    with pytest.raises(
        DataError, match=r"reads 3 columns of numbers without names, and rows.csv has 4 beside"
    ):
        said(file, X.assign(z=1.0))


def test_words_where_numbers_are_read(tmp_path):
    path, _ = xgboost_file(tmp_path)
    with pytest.raises(
        DataError, match=r"rows.csv, column 'dose' holds words, which m.json cannot read"
    ):
        said(read_model_file(path), X.assign(dose="much"))


def test_missing_values_that_a_model_does_not_read(tmp_path):
    path, _ = skops_file(tmp_path)
    with pytest.raises(ValueError, match=r"m.skops does not answer rows.csv: Input X contains NaN"):
        said(read_model_file(path), X.assign(dose=np.nan))


def test_a_regressor_that_answers_nan():
    class Half:
        n_features_in_, _estimator_type = 3, "regressor"

        def predict(self, rows):
            return np.where(rows[:, 0] > 0, 1.0, np.nan)

    with pytest.raises(ValueError, match=r"the model gave NaN or infinity for .* of the 80 rows"):
        said(as_model_file(Half()))
    assert said(as_model_file(Ridge().fit(X, NUMBERS))).values == pytest.approx(NUMBERS, abs=0.2)
