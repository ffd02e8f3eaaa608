"""The commands that live on a model read what `surelearn audit` reads."""

import pandas as pd
import pyarrow as pa
import pytest


def arff(frame):
    rows = frame.astype(object).where(frame.notna(), "?").itertuples(index=False)
    head = [
        "@relation r",
        *(f"@attribute {name} {'numeric' if name in 'xz' else '{a,b,yes,no}'}" for name in frame),
        "@data",
    ]
    return "\n".join([*head, *(",".join(map(str, row)) for row in rows)]).encode()


def feather(frame):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.Table.from_pandas(frame).schema) as writer:
        writer.write_table(pa.Table.from_pandas(frame), max_chunksize=50)
    return sink.getvalue().to_pybytes()


WRITE = {
    "new.jsonl": lambda frame: frame.to_json(orient="records", lines=True).encode(),
    "new.feather": feather,
    "new.arff": arff,
    "new.data": lambda frame: (
        frame.to_csv(sep=" ", index=False, na_rep="?").replace(" ", "   ").encode()
    ),
}


@pytest.mark.parametrize("name", WRITE)
def test_new_rows_in_every_format(name, place, shell):
    frame = shell.frame(150, seed=5)[["x", "z", "c", "y"]]
    frame.to_csv(place / "new.csv", index=False)
    (place / name).write_bytes(WRITE[name](frame))
    predicted = {}
    for source in ("new.csv", name):
        result = shell.run(f"predict classes/model {source} --out predicted.csv")
        assert result.exit_code == 0, result.output
        predicted[source] = pd.read_csv(place / "predicted.csv")[["prediction", "probability"]]
    pd.testing.assert_frame_equal(predicted[name], predicted["new.csv"])
    watched = shell.run(f"watch classes/certificate.json {name}")
    assert watched.exit_code == 0, watched.output
    assert "150" in watched.output


def test_json_lines_from_standard_input(place, shell):
    lines = WRITE["new.jsonl"](shell.frame(30, seed=6)[["x", "z", "c"]])
    result = shell.run("predict classes/model - --out predicted.csv", input=lines)
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(place / "predicted.csv")) == 30


def test_a_folder_read_with_its_first_line_as_names_is_verified_so(place, shell):
    """A first line that looks like data was decided once; the folder goes on with that."""
    frame = shell.frame(200)[["x", "z", "y"]].dropna()
    frame.to_csv(place / "bare.csv", index=False, header=False)
    skip = "--skip robustness --skip poisoning --skip membership --skip attribution"
    audit = (
        "audit bare.csv --target -1 --model models_of_workshop:classifier --jobs 1 --quiet"
        f" {skip} --out bare"
    )
    assert "looks like data" in shell.refusal(audit)
    for decided, rows in (("--no-header", len(frame)), ("--header", len(frame) - 1)):
        result = shell.run(
            f"{audit}{decided.strip('-')} {decided} --ledger {decided.strip('-')}.ledger"
        )
        assert result.exit_code == 0, result.output
        folder = f"bare{decided.strip('-')}"
        assert f'"rows": {rows}' in (place / folder / "audit.json").read_text()
        verified = shell.run(f"verify {folder} --data bare.csv")
        assert verified.exit_code == 0, verified.output
        result = shell.run(f"predict {folder}/model bare.csv --out predicted.csv")
        assert result.exit_code == 0, result.output
        assert len(pd.read_csv(place / "predicted.csv")) == rows
