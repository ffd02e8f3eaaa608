"""LightGBM's, XGBoost's and CatBoost's models are equals: described, certified, audited, and
saved in their own formats.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import surelearn
from surelearn import certificate_of, certify, load, save
from surelearn.attacks import decision_attack
from surelearn.fingerprint import _fingerprint, fingerprint_model, is_fingerprint_of
from surelearn.lacking import Lacking
from surelearn.persistence import MANIFEST, read_model
from surelearn.plain import content_hash
from surelearn.robust import PartitionClassifier
from surelearn.subject import subject_of

RNG = np.random.default_rng(0)
N = 240
TABLE = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "pay": RNG.normal(size=N),
        "town": pd.Categorical(RNG.choice(["x", "y", "ümlaut z"], N)),
    }
)
SCORE = TABLE["age"].fillna(0) + (TABLE["town"] == "x") + 0.3 * RNG.normal(size=N)
WORDS = np.where(SCORE > 0.3, "yes", "no")
NUMBERS = TABLE[["age", "pay"]].to_numpy()
THREE = np.digitize(SCORE, [0.0, 0.6])
LIBRARIES = [name for name in ("lightgbm", "xgboost", "catboost") if importlib.util.find_spec(name)]
if not LIBRARIES:
    pytest.skip("no booster is installed", allow_module_level=True)


def lightgbm(kind, **options):
    import lightgbm

    return getattr(lightgbm, kind)(
        **{"n_estimators": 6, "n_jobs": 1, "verbose": -1, "min_child_samples": 5, **options}
    )


def xgboost(kind, **options):
    import xgboost

    return getattr(xgboost, kind)(**{"n_estimators": 6, "n_jobs": 1, "max_depth": 3, **options})


def catboost(kind, **options):
    import catboost

    quiet = {
        "iterations": 6,
        "depth": 3,
        "thread_count": 1,
        "verbose": False,
        "allow_writing_files": False,
    }
    return getattr(catboost, kind)(**{**quiet, **options})


def stopped(library):
    """Fitted with early stopping, so that rounds after the best one are there and not used."""
    first, second = slice(None, 120), slice(120, None)
    noise = np.where(np.random.default_rng(1).random(N) < 0.3, "yes", WORDS)
    rows = NUMBERS
    if library == "lightgbm":
        import lightgbm as package

        model = lightgbm("LGBMClassifier", n_estimators=60, learning_rate=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(
                rows[first],
                noise[first],
                eval_set=[(rows[second], noise[second])],
                callbacks=[package.early_stopping(3, verbose=False)],
            )
    y = (noise == "yes").astype(int)
    if library == "xgboost":
        model = xgboost(
            "XGBClassifier", n_estimators=60, learning_rate=0.9, early_stopping_rounds=3
        )
        return model.fit(rows[first], y[first], eval_set=[(rows[second], y[second])], verbose=False)
    model = catboost(
        "CatBoostClassifier", iterations=60, learning_rate=0.9, early_stopping_rounds=3
    )
    return model.fit(rows[first], noise[first], eval_set=(rows[second], noise[second]))


def texts(rows):
    return rows.assign(town=rows["town"].astype(str))


CASES = {
    "lightgbm": {
        "words": lambda: (lightgbm("LGBMClassifier").fit(NUMBERS, WORDS), NUMBERS),
        "three classes": lambda: (lightgbm("LGBMClassifier").fit(NUMBERS, THREE), NUMBERS),
        "numbers": lambda: (lightgbm("LGBMRegressor").fit(NUMBERS, SCORE), NUMBERS),
        "categories": lambda: (lightgbm("LGBMClassifier").fit(TABLE, WORDS), TABLE),
        "early stopping": lambda: (stopped("lightgbm"), NUMBERS),
        "dart": lambda: (
            lightgbm("LGBMClassifier", boosting_type="dart").fit(NUMBERS, WORDS),
            NUMBERS,
        ),
        "random forest": lambda: (
            lightgbm("LGBMRegressor", boosting_type="rf", subsample=0.5, subsample_freq=1).fit(
                NUMBERS, SCORE
            ),
            NUMBERS,
        ),
        "linear leaves": lambda: (
            lightgbm("LGBMRegressor", linear_tree=True).fit(np.nan_to_num(NUMBERS), SCORE),
            np.nan_to_num(NUMBERS),
        ),
        "one leaf": lambda: (
            lightgbm("LGBMRegressor", min_child_samples=500).fit(NUMBERS, SCORE),
            NUMBERS,
        ),
    },
    "xgboost": {
        "two classes": lambda: (xgboost("XGBClassifier").fit(NUMBERS, THREE > 0), NUMBERS),
        "three classes": lambda: (xgboost("XGBClassifier").fit(NUMBERS, THREE), NUMBERS),
        "numbers": lambda: (xgboost("XGBRegressor").fit(NUMBERS, SCORE), NUMBERS),
        "categories": lambda: (
            xgboost("XGBClassifier", enable_categorical=True).fit(TABLE, THREE),
            TABLE,
        ),
        "early stopping": lambda: (stopped("xgboost"), NUMBERS),
        "dart": lambda: (xgboost("XGBRegressor", booster="dart").fit(NUMBERS, SCORE), NUMBERS),
        "linear": lambda: (
            xgboost("XGBRegressor", booster="gblinear", max_depth=None).fit(
                np.nan_to_num(NUMBERS), SCORE
            ),
            np.nan_to_num(NUMBERS),
        ),
        "random forest": lambda: (xgboost("XGBRFClassifier").fit(NUMBERS, THREE), NUMBERS),
        "two quantiles": lambda: (
            xgboost("XGBRegressor", objective="reg:quantileerror", quantile_alpha=[0.1, 0.9]).fit(
                NUMBERS, SCORE
            ),
            NUMBERS,
        ),
    },
    "catboost": {
        "words": lambda: (catboost("CatBoostClassifier").fit(NUMBERS, WORDS), NUMBERS),
        "three classes": lambda: (catboost("CatBoostClassifier").fit(NUMBERS, THREE), NUMBERS),
        "numbers": lambda: (catboost("CatBoostRegressor").fit(NUMBERS, SCORE), NUMBERS),
        "categories": lambda: (
            catboost("CatBoostClassifier", cat_features=["town"]).fit(texts(TABLE), WORDS),
            texts(TABLE),
        ),
        "early stopping": lambda: (stopped("catboost"), NUMBERS),
    },
}


@cache
def fitted(library, name):
    return CASES[library][name]()


every_model = pytest.mark.parametrize(
    ("library", "name"), [(one, name) for one in LIBRARIES for name in CASES[one]]
)
every_library = pytest.mark.parametrize("library", LIBRARIES)


def check(model, again, rows):
    for method in ("predict", "predict_proba"):
        assert hasattr(again, method) == hasattr(model, method)
        if hasattr(model, method):
            one, other = getattr(model, method)(rows), getattr(again, method)(rows)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert type(again) is type(model)
    assert fingerprint_model(again) == fingerprint_model(model)
    if hasattr(model, "classes_"):
        assert np.asarray(again.classes_).dtype == np.asarray(model.classes_).dtype
        np.testing.assert_array_equal(again.classes_, model.classes_)


@every_model
def test_it_is_saved_in_its_own_format(library, name, tmp_path):
    model, rows = fitted(library, name)
    saved = read_model(save(model, tmp_path / "model"))
    check(model, saved.model, rows)
    assert saved.versions[library]
    assert saved.model.get_params().keys() == model.get_params().keys()
    own = {"lightgbm": b"tree\nversion=v4", "xgboost": b'{"learner"', "catboost": b"CBM1"}[library]
    (data,) = (tmp_path / "model").glob("model-*")
    assert data.suffix == ".safetensors"
    assert own in data.read_bytes()
    again = load(save(saved.model, tmp_path / "again"))
    check(model, again, rows)


@every_library
def test_rounds_after_the_best_one_are_not_used(library, tmp_path):
    model, rows = fitted(library, "early stopping")
    again = load(save(model, tmp_path / "model"))
    best = "best_iteration" if library == "xgboost" else "best_iteration_"
    assert getattr(again, best) == getattr(model, best)
    assert getattr(again, best) > 0
    if library == "lightgbm":
        assert again.best_score_ == model.best_score_
        assert again.evals_result_ == model.evals_result_
    if library == "xgboost":  # which keeps the rounds that it does not use
        every = model.predict_proba(
            rows, iteration_range=(0, model.get_booster().num_boosted_rounds())
        )
        assert np.abs(every - again.predict_proba(rows)).max() > 1e-3
        assert again.best_score == model.best_score
        assert again.evals_result() == model.evals_result()


def test_categories_of_a_table_are_those_of_the_fit(tmp_path):
    """LightGBM numbers a table's categories, and keeps which is which beside its trees."""
    pytest.importorskip("lightgbm")
    model, rows = fitted("lightgbm", "categories")
    again = load(save(model, tmp_path / "model"))
    assert again.booster_.pandas_categorical == [["x", "y", "ümlaut z"]]
    other = rows.assign(town=rows["town"].cat.reorder_categories(["y", "ümlaut z", "x"]))
    np.testing.assert_array_equal(again.predict_proba(other), model.predict_proba(rows))


def prepared(library):
    make = {"lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}[library]
    learner = make(
        {
            "lightgbm": "LGBMClassifier",
            "xgboost": "XGBClassifier",
            "catboost": "CatBoostClassifier",
        }[library]
    )
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return make_pipeline(columns, learner)


@every_library
def test_it_is_saved_behind_its_preparation_and_inside_others(library, tmp_path):
    y = (WORDS == "yes").astype(int)
    model = prepared(library).fit(TABLE, y)
    check(model, load(save(model, tmp_path / "pipeline")), TABLE)
    cut = FixedThresholdClassifier(
        prepared(library), threshold=0.3, response_method="predict_proba"
    ).fit(TABLE, y)
    check(cut, load(save(cut, tmp_path / "threshold")), TABLE)
    parts = PartitionClassifier(prepared(library)[-1], partitions=2).fit(
        np.nan_to_num(NUMBERS), WORDS
    )
    again = load(save(parts, tmp_path / "partitions"))
    np.testing.assert_array_equal(
        again.predict(np.nan_to_num(NUMBERS)), parts.predict(np.nan_to_num(NUMBERS))
    )
    assert fingerprint_model(again) == fingerprint_model(parts)
    assert json.loads((tmp_path / "pipeline" / MANIFEST).read_text())["versions"][library]


def test_a_prepared_target(tmp_path):
    pytest.importorskip("lightgbm")
    model = TransformedTargetRegressor(lightgbm("LGBMRegressor"), transformer=StandardScaler()).fit(
        NUMBERS, SCORE
    )
    check(model, load(save(model, tmp_path / "model")), NUMBERS)


@every_model
def test_a_subject_says_what_is_known_of_it(library, name):
    model, rows = fitted(library, name)
    subject = subject_of(model)
    assert subject.task == ("classification" if hasattr(model, "predict_proba") else "regression")
    if subject.task == "classification":
        assert subject.classes == tuple(np.asarray(model.classes_).tolist())
    assert subject.inputs.count == rows.shape[1]
    if name == "categories":
        assert subject.inputs.columns == ("age", "pay", "town")
    if (library, name) == ("catboost", "categories"):
        # CatBoost copies the list that it is given
        assert "cannot be cloned" in subject.refit.reason
    else:
        assert type(subject.refit) is type(model)
    assert isinstance(subject.scores, Lacking)
    reason = {"linear": "not written down", "linear leaves": "jump"}.get(name, "made of trees")
    assert reason in subject.scores.reason
    for part in ("form", "objective", "machines", "leave_one_out", "dual", "record"):
        assert isinstance(getattr(subject, part), Lacking), part


@every_library
def test_it_is_certified_and_attacked(library, tmp_path):
    y = (WORDS == "yes").astype(int)
    learner = prepared(library)[-1]
    rows = np.nan_to_num(NUMBERS)
    model = clone(learner).fit(rows[:120], y[:120])
    certificate = certify(model, rows[120:], y[120:])
    assert certificate.facts.hashes["model"] == fingerprint_model(model)
    saved = read_model(save(model, tmp_path / "model", certificate=certificate))
    assert saved.certificate.verify(saved.model, rows[120:], y[120:])
    other = clone(learner).fit(rows[:100], y[:100])
    assert not certificate.verify(other, rows[120:], y[120:])
    lacking = certificate_of(model, rows[:120], y[:120])
    assert lacking.claims == ()
    attack = decision_attack(
        model, rows[:10], np.ravel(model.predict(rows[:10])), others=rows, random_state=0
    )
    assert attack.success.any()
    assert (np.ravel(model.predict(attack.rows)) != np.ravel(model.predict(rows[:10])))[
        attack.success
    ].all()


@every_library
def test_it_is_a_candidate_of_the_audit(library, tmp_path):
    table = load_breast_cancer(as_frame=True).frame  # XGBoost takes whole numbers as labels only
    result = surelearn.audit(
        table,
        target="target",
        models={"it": prepared(library)[-1]},
        ledger=False,
        refits=0,
        curve_repeats=0,
    )
    assert result.certificate["risk"].value < 0.3
    again = load(save(result.model, tmp_path / "model"))
    assert fingerprint_model(again) == fingerprint_model(result.model)


@every_library
def test_a_class_derived_from_it_is_another(library, tmp_path):
    model = prepared(library)[-1]
    mine = type("Mine", (type(model),), {})
    fresh = mine(**model.get_params()).fit(NUMBERS, (WORDS == "yes").astype(int))
    assert "from which it inherits" in subject_of(fresh).form.reason
    with pytest.raises(ValueError, match=r"cannot be saved without pickle|not on the list"):
        save(fresh, tmp_path / "model")


# --------------------------------------------------------------------------------------------------


def rewritten(folder, change):
    """The folder with a booster's content or manifest changed, and every hash made consistent
    again.
    """
    manifest = json.loads((folder / MANIFEST).read_text())
    (data,) = folder.glob("model-*")
    arrays = from_bytes(data.read_bytes())
    change(manifest, arrays)
    content = to_bytes(arrays)
    data.unlink()
    digest = hashlib.sha256(content).hexdigest()
    name = f"model-{digest[:16]}.safetensors"
    (folder / name).write_bytes(content)
    manifest["files"] = {name: {"sha256": digest, "bytes": len(content)}}
    manifest["hash"] = content_hash(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def edited(*pairs):
    """The longest array, the content, with texts replaced; the sizes of LightGBM's trees are
    those that they then have.
    """

    def change(_, arrays):
        key = max(arrays, key=lambda name: arrays[name].size)
        text = arrays[key].tobytes().decode()
        for pattern, new in pairs:
            text, count = re.subn(pattern, new, text, count=1)
            assert count == 1, pattern
        if text.startswith("tree\n") and "tree_sizes" not in str(pairs):
            head, trees, tail = re.fullmatch(
                r"(.*?\n)(Tree=0\n.*?)(end of trees\n.*)", text, re.DOTALL
            ).groups()
            sizes = [len(tree.encode()) for tree in re.split(r"(?m)^(?=Tree=)", trees)[1:]]
            text = (
                re.sub(r"tree_sizes=.*", f"tree_sizes={' '.join(map(str, sizes))}", head)
                + trees
                + tail
            )
        arrays[key] = np.frombuffer(text.encode(), dtype=np.uint8)

    return change


# each ends the process, hangs or reads what is not there, where LightGBM reads it unchecked
LIGHTGBM_LIES = {
    "a child that is not there": ((r"left_child=\S+", "left_child=99999999"), "is no tree"),
    "a node below itself": ((r"left_child=\S+", "left_child=0"), "is no tree"),
    "a leaf that is not there": ((r"right_child=\S+", "right_child=-2147483648"), "is no tree"),
    "too few leaves": ((r"leaf_value=\S+ ", "leaf_value="), "leaf_value are"),
    "no thresholds": ((r"\nthreshold=.*", ""), "is not complete"),
    "a column that is not there": (
        (r"split_feature=\S+", "split_feature=77"),
        "a column that is not there",
    ),
    "many leaves": ((r"num_leaves=\S+", "num_leaves=2000000000"), "are"),
    "categories that are not there": (
        (r"decision_type=\S+", "decision_type=1"),
        "no such categories",
    ),
    "many classes": ((r"num_class=1", "num_class=1000000"), "more than its trees"),
    "an objective of many classes": (
        (r"objective=.*", "objective=multiclass num_class:5000"),
        "another number of classes",
    ),
    "a tree elsewhere": ((r"tree_sizes=\S+", "tree_sizes=99999999"), "longer than the text"),
    "a name that is not known": (
        (r"\nshrinkage=", "\nsystem=rm\nshrinkage="),
        "'system', which is not known",
    ),
    "no number": ((r"leaf_value=\S+", "leaf_value=" + "1" * 60 + "x"), "are not numbers"),
}
XGBOOST_LIES = {
    "a child that is not there": (
        (r'"left_children":\[\d+', '"left_children":[2147483647'),
        "out of range",
    ),
    "a node below itself": ((r'"left_children":\[\d+', '"left_children":[0'), "is no tree"),
    "one child": ((r'"right_children":\[\d+', '"right_children":[-1'), "one child"),
    "a column that is not there": (
        (r'"split_indices":\[\d+', '"split_indices":[50'),
        "out of range",
    ),
    "an output that is not there": ((r'"tree_info":\[\d+', '"tree_info":[9'), "out of range"),
    "many columns": (
        (r'"num_feature":"2","num_target"', '"num_feature":"999999999","num_target"'),
        "too many",
    ),
    "many targets": ((r'"num_target":"1"', '"num_target":"1000000"'), "fewer than outputs"),
    "many nodes": ((r'"num_nodes":"\d+"', '"num_nodes":"2000000000"'), "are not"),
    "another booster": ((r'"name":"gbtree"', '"name":"gbsystem"'), "it is a"),
    "vectors in leaves": ((r'"size_leaf_vector":"1"', '"size_leaf_vector":"7"'), "several outputs"),
    "no JSON": ((r'"learner"', "learner"), "is not JSON"),
}
LIES = [("lightgbm", name, *LIGHTGBM_LIES[name]) for name in LIGHTGBM_LIES] + [
    ("xgboost", name, *XGBOOST_LIES[name]) for name in XGBOOST_LIES
]


@pytest.mark.parametrize(
    ("library", "name", "edit", "says"),
    LIES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_its_library_would_believe_is_refused_in_one_sentence(
    library, name, edit, says, tmp_path
):
    pytest.importorskip(library)
    model, _ = fitted(library, "numbers")
    folder = rewritten(save(model, tmp_path / "model"), edited(edit))
    with pytest.raises(ValueError, match="is damaged: ") as refused:
        load(folder)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_categories_that_a_tree_does_not_have(tmp_path):
    pytest.importorskip("lightgbm")
    model, _ = fitted("lightgbm", "categories")
    for edit, says in (
        ((r"(cat_boundaries=.*)\d+", r"\g<1>100000"), "cat_threshold are"),
        ((r"cat_boundaries=0 1", "cat_boundaries=5 1"), "do not follow"),
        ((r"num_cat=[1-9]\d*", "num_cat=0"), "no such categories"),
    ):
        folder = rewritten(save(model, tmp_path / "model"), edited(edit))
        with pytest.raises(ValueError, match=says):
            load(folder)


def test_sets_and_names_of_categories_that_are_not_there(tmp_path):
    pytest.importorskip("xgboost")
    model, _ = fitted("xgboost", "categories")
    for edit, says in (
        ((r'"categories_sizes":\[\d+', '"categories_sizes":[99999999'), "out of range"),
        (
            (r'"categories_nodes":\[\d+', '"categories_nodes":[0'),
            "without its categories|out of range|is no tree",
        ),
        ((r'"offsets":\[0,1', '"offsets":[0,-5'), "out of range"),
        ((r'"sorted_idx":\[\d+', '"sorted_idx":[-4'), "out of range"),
    ):
        folder = rewritten(save(model, tmp_path / "model"), edited(edit))
        with pytest.raises(ValueError, match=says):
            load(folder)


@every_library
def test_no_other_class_is_made(library, tmp_path):
    model, _ = fitted(library, "numbers")
    for named in ("subprocess.Popen", "lightgbm.Dataset", "xgboost.callback", "os.system", 7, None):
        folder = save(model, tmp_path / "model")

        def change(manifest, _, named=named):
            manifest["parameters"]["booster"] = named

        with pytest.raises(
            ValueError, match=r"is damaged: .*(is no booster that is made again|has no attribute)"
        ):
            load(rewritten(folder, change))


@every_library
def test_so_many_threads_are_not_started(library, tmp_path):
    if library == "catboost":
        pytest.skip("its number of threads is taken by CatBoost alone")
    model, _ = fitted(library, "numbers")

    def change(manifest, _):
        manifest["parameters"]["state"]["n_jobs"] = 10**9

    with pytest.raises(ValueError, match="asks for 1000000000 threads"):
        load(rewritten(save(model, tmp_path / "model"), change))


def test_what_ends_catboost_ends_another_process(tmp_path, monkeypatch):
    pytest.importorskip("catboost")
    from surelearn.persistence import catboost_cbm

    model, _ = fitted("catboost", "numbers")
    folder = save(model, tmp_path / "model")

    def cut(_, arrays):
        key = max(arrays, key=lambda name: arrays[name].size)
        arrays[key] = arrays[key][:-100].copy()

    with pytest.raises(ValueError, match="is damaged: CatBoost does not read it: "):
        load(rewritten(folder, cut))
    save(model, folder)
    monkeypatch.setattr(catboost_cbm, "_TRIAL", "import os; os.abort()")
    with pytest.raises(
        ValueError,
        match="is damaged: CatBoost does not read it: it ended the process that tried it",
    ):
        load(folder)


@every_library
def test_without_its_library_it_says_what_to_install(library, tmp_path, monkeypatch):
    model, _ = fitted(library, "numbers")
    folder = save(model, tmp_path / "model")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        ModuleNotFoundError, match=rf"needs {library}: pip install 'surelearn\[boosters\]'"
    ):
        load(folder)


@every_library
def test_a_function_inside_is_refused(library, tmp_path):
    """An objective of the user's own is a function, which no file keeps."""
    if library == "catboost":
        pytest.skip("CatBoost asks for an object, which is refused as a function is")
    make = lightgbm if library == "lightgbm" else xgboost
    kind = "LGBMRegressor" if library == "lightgbm" else "XGBRegressor"
    model = make(kind, objective=lambda y, p: (p - y, np.ones_like(y))).fit(NUMBERS, SCORE)
    with pytest.raises(ValueError, match="cannot be saved without pickle"):
        save(model, tmp_path / "model")


@every_library
def test_a_hash_as_it_was_first_made_is_still_its_own(library):
    """XGBoost's and CatBoost's were hashed by what they are pickled from, which threads and
    rewriting change.
    """
    model, _ = fitted(library, "numbers")
    before = _fingerprint(model, first=True)
    assert is_fingerprint_of(model, before)
    assert (before == fingerprint_model(model)) == (library == "lightgbm")
    assert not is_fingerprint_of(fitted(library, "three classes")[0], before)
