"""An audit of images, from an archive and from a folder, through the public flow."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

import surelearn
from surelearn.auditing.dividing import divide
from surelearn.auditing.options import Options
from surelearn.auditing.sections.attribution.work import tiles_of
from surelearn.auditing.verification import verify_folder
from surelearn.cli import main
from surelearn.data import DataError, read_table

DIGITS = load_digits()
N = 420
LONG = ("poisoning", "membership", "attribution", "stability", "learning_curve", "robustness")


def archive(folder, n=N):
    """Three digits, as bytes."""
    kept = np.flatnonzero(DIGITS.target < 3)[:n]
    images, labels = DIGITS.images[kept].astype(np.uint8), DIGITS.target[kept]
    path = folder / "digits.npz"
    np.savez(
        path, x_train=images[:300], x_test=images[300:], y_train=labels[:300], y_test=labels[300:]
    )
    return path


def run(*arguments):
    """The exit code of a command line."""
    with pytest.raises(SystemExit) as ended:
        main([str(one) for one in arguments])
    return ended.value.code


def skipped(*sections):
    return [word for section in sections for word in ("--skip", section)]


def test_an_archive_of_images_from_audit_to_prediction(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = archive(tmp_path)
    asked = ["--sets", 0.1, "--require", "error <= 0.2", "--model", "logistic regression"]
    assert run("audit", path, *asked, "--out", "out", *skipped(*LONG)) == 0
    assert "420 images of 8 × 8 pixels, target y" in capsys.readouterr().out
    page = json.loads((tmp_path / "out/audit.json").read_text())
    assert page["numbers"]["reading"]["joined"] is True
    assert not any("pixel" in claim["label"] for claim in page["certificate"]["claims"])
    assert run("verify", "out", "--data", path) == 0
    assert run("predict", "out/model", path, "--out", "new.csv") == 0
    lines = (tmp_path / "new.csv").read_text().splitlines()
    assert lines[0] == "y,prediction,probability,set,abstain"
    assert len(lines) == 1 + N
    capsys.readouterr()
    np.savez(tmp_path / "large.npz", X=np.zeros((5, 9, 9), dtype=np.uint8))
    assert run("predict", "out/model", "large.npz") == 2
    assert "images of 9 × 9 pixels, and the model reads 8 × 8 pixels" in capsys.readouterr().err
    np.savez(tmp_path / "flat.npz", X=np.zeros((5, 64)))
    assert run("predict", "out/model", "flat.npz") == 2
    assert "flat.npz holds no images" in capsys.readouterr().err


def test_a_network_is_audited_and_verified(tmp_path):
    pytest.importorskip("torch")
    from surelearn.neural import ImageClassifier

    model = ImageClassifier(widths=(6, 8), shape=(8, 8), epochs=5, device="cpu", random_state=0)
    table = read_table(archive(tmp_path))
    asked = {"ledger": False, "n_jobs": 1, "skip": LONG, "show_rows": True}
    page = surelearn.audit(table, models={"CNN": model}, sets=0.1, **asked)
    assert page.certificate["risk"].value < 0.3
    page.write(tmp_path / "out")
    found = verify_folder(tmp_path / "out", tmp_path / "digits.npz")
    assert found, found.differences
    titles = [chart.title for chart in page["images"].charts]
    assert titles[0] == "Mean image of each class, rows to fit on"
    assert titles[-1] == "What excites each class's score most"
    assert (tmp_path / "out/report.html").stat().st_size < 1_000_000


def test_pictures_of_rows_are_drawn_only_where_rows_may_be_shown(tmp_path):
    from surelearn.linear import Perceptron

    table = read_table(archive(tmp_path))
    asked = {"ledger": False, "n_jobs": 1, "skip": [s for s in LONG if s != "robustness"]}
    pages = [
        surelearn.audit(table, models=Perceptron(epochs=1), show_rows=shown, effort=0.2, **asked)
        for shown in (False, True)
    ]
    drawn = [
        [
            chart.title
            for section in page.sections
            for chart in section.charts
            if chart.kind == "pictures"
        ]
        for page in pages
    ]
    assert drawn[0] == [
        "Mean image of each class, rows to fit on",
        "What excites each class's score most",
    ]
    assert "The smallest changes that turn an answer" in drawn[1]
    assert drawn[1][1].startswith("The surest wrong answers")
    pages[1].write(tmp_path / "shown")
    html = (tmp_path / "shown/report.html").read_text(encoding="utf-8")
    assert html.count('src="data:image/png;base64,') > 6
    assert "pixel 1,1" not in html
    assert len(html) < 1_000_000


def test_pixels_have_no_findings_slices_or_drift_of_their_own(tmp_path):
    table = read_table(archive(tmp_path))
    assert [column.name for column in table.studied] == ["y"]
    assert {finding.code for finding in table.findings} <= {"SL106", "SL115"}
    page = surelearn.audit(
        table,
        models="majority",
        ledger=False,
        n_jobs=1,
        skip=LONG,
    )
    assert not [claim for claim in page.claims if claim.family == "slice"]
    assert {one["role"] for one in page.reference["columns"]} == {"score"}
    assert page.schema.images == (8, 8, 1)


def test_candidates_for_images_are_named(tmp_path):
    table = read_table(archive(tmp_path))
    with pytest.raises(
        ValueError, match="no candidate 'boosted trees' for classification: there are"
    ):
        surelearn.audit(table, models="boosted trees", ledger=False)


def test_tiles_cover_an_image_once():
    seen = np.zeros((9, 7))
    for top, bottom, left, right in tiles_of((9, 7, 1), 2):
        seen[top:bottom, left:right] += 1
    assert (seen == 1).all()


def test_a_folder_of_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for kind in ("cat", "dog"):
            (tmp_path / "pets" / split / kind).mkdir(parents=True)
            for i in range(15):
                pixels = rng.integers(0, 255, (5, 4, 3), dtype=np.uint8)
                image.fromarray(pixels).save(tmp_path / "pets" / split / kind / f"{i}.png")
    image.fromarray(np.zeros((5, 4), dtype=np.uint8)).save(tmp_path / "pets/train/cat/gray.png")
    (tmp_path / "pets/train/cat/notes.txt").write_text("…")
    table = read_table(tmp_path / "pets")
    assert table.images == (5, 4, 3)
    assert table.X.shape == (61, 60)
    assert table.X.columns[2] == "pixel 1,1 blue"
    assert sorted(set(table.y)) == ["cat", "dog"]
    assert [finding.code for finding in table.findings] == ["SL115"]


def pets(folder):
    image = pytest.importorskip("PIL.Image")
    for kind in ("cat", "dog"):
        (folder / kind).mkdir(parents=True)
        for i in range(12):
            image.fromarray(np.full((4, 4), 7 * i, dtype=np.uint8)).save(folder / kind / f"{i}.png")
    return image


def mixed(folder, image):
    image.fromarray(np.zeros((4, 5), dtype=np.uint8)).save(folder / "dog/3.png")


def one_class(folder, image):
    for path in (folder / "dog").iterdir():
        path.unlink()


def unreadable(folder, image):
    (folder / "dog/3.png").write_bytes((folder / "dog/4.png").read_bytes()[:40])


def another_thing(folder, image):
    (folder / "dog/3.jpg").write_text("a text")


def loose(folder, image):
    image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(folder / "3.png")


def bomb(folder, image):
    image.new("1", (6_000, 6_000)).save(folder / "dog/3.png")


def link(folder, image):
    outside = folder.parent / "secret.png"
    image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(outside)
    (folder / "dog/link.png").symlink_to(outside)


def linked_class(folder, image):
    (folder.parent / "secrets").mkdir()
    (folder / "horse").symlink_to(folder.parent / "secrets", target_is_directory=True)


def not_a_number(folder, image):
    for path in (*(folder / "dog").iterdir(), *(folder / "cat").iterdir()):
        pixels = np.full((4, 4), np.nan, dtype=np.float32)
        image.fromarray(pixels).save(path.with_suffix(".tif"))
        path.unlink()


WRONG = {
    mixed: "images must have one size",
    one_class: "one folder of images, 'cat'",
    unreadable: "pets/dog/3.png cannot be read as an image",
    another_thing: "pets/dog/3.jpg cannot be read as an image",
    loose: "beside the folders of its classes, such as '3.png'",
    bomb: "make them smaller first",
    link: "is a link to outside of pets",
    linked_class: "is a link to outside of pets",
    not_a_number: "NaN",
}


@pytest.mark.parametrize("make", WRONG, ids=lambda make: make.__name__)
def test_a_wrong_folder_gets_one_sentence(make, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "pets"
    make(folder, pets(folder))
    monkeypatch.chdir(tmp_path)
    assert run("audit", folder) == 2
    said = capsys.readouterr()
    assert WRONG[make] in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert not (tmp_path / "surelearn-audit").exists()


def test_without_pillow_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    pets(tmp_path / "pets")
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r"Pillow reads: pip install 'surelearn\[images\]'"):
        read_table(tmp_path / "pets")


def test_many_images_are_compared_on_rows_held_out(tmp_path):
    rng = np.random.default_rng(0)
    for n, held in ((1999, 0), (2000, 200)):
        X, y = rng.integers(0, 9, (n, 3, 3)), np.arange(n) % 2
        np.savez(tmp_path / "t.npz", X=X, y=y)
        divided = divide(read_table(tmp_path / "t.npz"), [], Options())
        assert divided.split.select.size == held
        np.savez(tmp_path / "t.npz", X=X.reshape(n, 9), y=y)
        assert not divide(read_table(tmp_path / "t.npz"), [], Options()).split.select.size
    assert divide(
        read_table(tmp_path / "t.npz"), [], Options(select_fraction=0.3)
    ).split.select.size
