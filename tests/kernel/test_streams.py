"""Rows in chunks: the same from every source, and one sentence for what cannot be used."""

import numpy as np
import pandas as pd
import pytest

from surelearn.kernel.streams import ArrayRows, ParquetRows, label_values

rng = np.random.RandomState(0)
X = rng.standard_normal((53, 3))
Y = rng.standard_normal((53, 2))


@pytest.fixture
def path(tmp_path):
    """X and Y as Parquet, in row groups of 20."""
    return write(tmp_path / "rows.parquet")


def write(path, **columns):
    values = {f"x{j}": X[:, j] for j in range(3)} | {f"y{j}": Y[:, j] for j in range(2)}
    frame = pd.DataFrame(values | columns)
    frame.to_parquet(path, row_group_size=20)
    return path


@pytest.mark.parametrize("size", [1, 7, 20, 53, 100])
def test_array_and_parquet_give_the_same_chunks(path, size):
    array, file = ArrayRows(X, Y), ParquetRows(path, ["y0", "y1"])
    assert (array.n, array.d, array.outputs) == (file.n, file.d, file.outputs) == (53, 3, 2)
    pairs = list(zip(array.chunks(size), file.chunks(size), strict=True))
    for (A, a), (B, b) in pairs:
        np.testing.assert_array_equal(A, B)
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.concatenate([B for _, (B, _) in pairs]), X)


def test_rows_are_taken_in_the_order_asked_for(path):
    numbers = np.array([52, 0, 19, 20, 3, 3])
    for rows in (ArrayRows(X, Y), ParquetRows(path, ["y0", "y1"])):
        some, targets = rows.take(numbers)
        np.testing.assert_array_equal(some, X[numbers])
        np.testing.assert_array_equal(targets, Y[numbers])


def test_mapped_arrays_stay_mapped(tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    chunk, _ = next(ArrayRows(mapped, Y).chunks(10))
    assert chunk.dtype == np.float32
    assert len(chunk) == 10


def test_types_of_columns(tmp_path):
    path = tmp_path / "types.parquet"
    pd.DataFrame({"a": np.array([1, 2], np.int8), "b": [True, False], "y": [0.5, 1.5]}).to_parquet(
        path
    )
    values, targets = next(ParquetRows(path, "y").chunks(5))
    np.testing.assert_array_equal(values, [[1.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(targets, [[0.5], [1.5]])
    pd.DataFrame({"a": np.array([1, 2], np.float32), "y": [0.5, 1.5]}).to_parquet(path)
    assert next(ParquetRows(path, "y").chunks(5))[0].dtype == np.float32


def test_features_in_the_order_named(path):
    rows = ParquetRows(path, "y1", features=["x2", "x0"])
    np.testing.assert_array_equal(rows.take(np.arange(53))[0], X[:, [2, 0]])


@pytest.mark.parametrize(
    ("labels", "outputs"), [(["no", "yes"], 1), (["a", "b", "c"], 3), ([1, 2], 1)]
)
def test_labels_become_plus_and_minus_one(tmp_path, labels, outputs):
    drawn = np.array(labels)[np.arange(53) % len(labels)]
    path = write(tmp_path / "labels.parquet", label=drawn)
    assert label_values(path, "label").tolist() == labels
    file = ParquetRows(path, "label", features=["x0", "x1", "x2"], classes=labels)
    for rows in (file, ArrayRows(X, drawn, classes=labels)):
        assert rows.outputs == outputs
        targets = rows.take(np.arange(6))[1]
        assert set(targets.ravel()) == {-1.0, 1.0}
        codes = targets.argmax(1) if outputs > 1 else (targets[:, 0] > 0).astype(int)
        assert codes.tolist() == [i % len(labels) for i in range(6)]


def test_bad_files(tmp_path):
    with pytest.raises(ValueError, match=r"gone\.parquet does not exist"):
        ParquetRows(tmp_path / "gone.parquet", "y")
    with pytest.raises(ValueError, match="is a folder without Parquet files"):
        ParquetRows(tmp_path, "y")
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"text\.parquet is not a parquet file, or is damaged"):
        ParquetRows(tmp_path / "text.parquet", "b")
    path = write(tmp_path / "rows.parquet", word="w")
    with pytest.raises(ValueError, match=r"rows\.parquet has no column 'z'"):
        ParquetRows(path, "z")
    with pytest.raises(ValueError, match=r"rows\.parquet has no column 'x9'"):
        ParquetRows(path, "y0", features=["x9"])
    with pytest.raises(ValueError, match=r"rows\.parquet, column 'word' holds (large_)?string"):
        ParquetRows(path, "y0")
    with pytest.raises(ValueError, match="has no column 'z'"):
        label_values(path, "z")
    with pytest.raises(ValueError, match="target must name one column"):
        ParquetRows(path, ["y0", "y1"], features=["x0"], classes=[0, 1])
    pd.DataFrame({"x": [], "y": []}, dtype=float).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match=r"empty\.parquet is empty"):
        ParquetRows(tmp_path / "empty.parquet", "y")


@pytest.mark.parametrize(("bad", "said"), [(np.nan, "a missing value"), (np.inf, "inf")])
def test_values_that_are_no_numbers_are_named_with_their_row(tmp_path, bad, said):
    spoiled = X.copy()
    spoiled[41, 1] = bad
    path = write(tmp_path / "nan.parquet", x1=spoiled[:, 1])
    with pytest.raises(ValueError, match=rf"nan\.parquet, column 'x1' has {said} in row 41 "):
        list(ParquetRows(path, "y0").chunks(10))
    with pytest.raises(ValueError, match=f"X, column 1 has {said} in row 41 "):
        list(ArrayRows(spoiled, Y).chunks(10))
    targets = Y[:, 0].copy()
    targets[45] = bad
    with pytest.raises(ValueError, match=f"y has {said} in row 45 "):
        list(ArrayRows(X, targets).chunks(10))
    path = write(tmp_path / "target.parquet", y0=targets)
    with pytest.raises(ValueError, match=rf"target\.parquet, column 'y0' has {said} in row 45 "):
        list(ParquetRows(path, "y0").chunks(10))


def test_missing_values_of_integers_and_labels(tmp_path):
    path = write(
        tmp_path / "missing.parquet",
        x1=pd.array([1, None, *[2] * 51], dtype="Int64"),
        y0=["a", None, *["b"] * 51],
    )
    with pytest.raises(ValueError, match=r"column 'y0' has rows without a label"):
        label_values(path, "y0")
    with pytest.raises(ValueError, match=r"column 'x1' has a missing value in row 1 "):
        list(ParquetRows(path, "y1", features=["x1"]).chunks(10))


def test_bad_arrays():
    with pytest.raises(ValueError, match="one row for each of the 53 rows"):
        ArrayRows(X, Y[:5])
    with pytest.raises(ValueError, match="array \\(n, d\\) of numbers"):
        ArrayRows(X[0], Y[0])
    with pytest.raises(ValueError, match="X is empty"):
        ArrayRows(X[:0], Y[:0])
    with pytest.raises(ValueError, match="numbers are needed, or classes="):
        list(ArrayRows(X, np.array(["a"] * 53)).chunks(9))
    with pytest.raises(ValueError, match="holds the label 'c'"):
        list(ArrayRows(X, np.array(["c"] * 53), classes=["a", "b"]).chunks(9))
    with pytest.raises(ValueError, match="at least two different labels"):
        ArrayRows(X, Y[:, 0], classes=[1])
