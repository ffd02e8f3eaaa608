"""`surelearn verify`: any edited number of a folder is found."""

import json
import re

import pytest

from surelearn.auditing.verification import verify_folder
from surelearn.plain import content_hash


def test_what_was_written_verifies(place, shell):
    for name in ("classes", "amounts", "groups"):
        result = shell.run(f"verify {name} --data t.csv")
        assert result.exit_code == 0, result.output
        assert f"{name}: verified" in result.stdout
        assert "facts from model and rows" in result.stdout
        assert "report.html from audit.json" in result.stdout
    assert "pass --data to measure everything again" in shell.run("verify classes").stdout
    assert shell.run("verify classes --quiet").output == ""


def numbers(plain, path=()):
    """Paths to numbers: all, but for long lists."""
    if isinstance(plain, dict):
        return [found for key, value in plain.items() for found in numbers(value, (*path, key))]
    if isinstance(plain, list):
        return [found for i, value in enumerate(plain[:2]) for found in numbers(value, (*path, i))]
    return [path] if isinstance(plain, (int, float)) and path[-1] != "version" else []


def edited(plain, path):
    again = json.loads(json.dumps(plain))
    place = again
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = (
        not place[path[-1]] if isinstance(place[path[-1]], bool) else place[path[-1]] + 1
    )
    return again


def verifies(folder):
    try:
        return bool(verify_folder(folder))
    except ValueError:  # a number that no audit has: a δ above 1
        return False


@pytest.mark.parametrize("name", ["audit.json", "certificate.json"])
def test_any_edited_number_is_found(name, place):
    """Every number of the files as JSON; this takes a while, so the sections that only draw are
    sampled.
    """
    path = place / "classes" / name
    plain = json.loads(path.read_text())
    everything = numbers(plain)
    for number in everything[:: max(1, len(everything) // 40)]:
        path.write_text(json.dumps(edited(plain, number)))
        assert not verifies(place / "classes"), number
    path.write_text(json.dumps(plain))
    assert verify_folder(place / "classes")


def test_any_edited_number_of_the_page_is_found(place):
    path = place / "classes" / "report.html"
    page = path.read_text()
    spots = [match.start() for match in re.finditer(r"\d", page)]
    for spot in spots[:: len(spots) // 25]:
        path.write_text(page[:spot] + str((int(page[spot]) + 1) % 10) + page[spot + 1 :])
        assert not verify_folder(place / "classes"), page[spot - 20 : spot + 20]


@pytest.mark.parametrize(
    ("name", "theorem"),
    [("classes", "robust_accuracy"), ("amounts", "poisoning_threshold_regression")],
)
def test_what_sections_prove_is_computed_again(name, theorem, place, shell):
    """A value that does not follow from its inputs is found though every hash is new."""
    path = place / name / "audit.json"
    plain = json.loads(path.read_text())
    claims = [claim for section in plain["sections"] for claim in section["claims"]]
    assert theorem in [claim["theorem"] for claim in claims]
    assert (
        f"{len(claims)} claims of sections from their inputs"
        in shell.run(f"verify {name} --data t.csv").stdout
    )
    (claim,) = [claim for claim in claims if claim["theorem"] == theorem]
    claim["value"] += 0.01
    path.write_text(json.dumps({**plain, "hash": content_hash(plain)}))
    (place / name / "report.html").unlink()
    found = verify_folder(place / name)
    assert [line.startswith(f"audit.json: {claim['label']}: ") for line in found.differences] == [
        True
    ]


def test_an_edit_with_a_new_hash_is_found_from_the_data(place):
    """An error hidden everywhere and consistently: facts, claim, hashes. Only the data show it."""
    from surelearn.bounds import clopper_pearson

    files = {
        name: place / "classes" / name
        for name in ("certificate.json", "audit.json", "model/manifest.json")
    }
    certificate = json.loads(files["certificate.json"].read_text())
    risk = certificate["claims"][0]
    risk["inputs"]["errors"] = certificate["facts"]["values"]["risk.count"] = 0
    risk["value"] = clopper_pearson(0, risk["inputs"]["n"], risk["inputs"]["delta"])
    certificate["hash"] = content_hash(certificate)
    for name, path in files.items():
        plain = certificate
        if name != "certificate.json":
            plain = {**json.loads(path.read_text()), "certificate": certificate}
            plain["hash"] = content_hash(plain)
        path.write_text(json.dumps(plain))
    (place / "classes" / "report.html").unlink()
    assert verify_folder(place / "classes")
    found = verify_folder(place / "classes", place / "t.csv")
    assert not found
    assert any(
        "fact 'risk.count' is not what model and rows give" in line for line in found.differences
    )


def resealed(folder, change, audit=lambda plain: plain):
    """An edit of the certificate wherever it stands, every hash made anew."""
    certificate = json.loads((folder / "certificate.json").read_text())
    change(certificate)
    certificate["hash"] = content_hash(certificate)
    (folder / "certificate.json").write_text(json.dumps(certificate))
    for name in ("audit.json", "model/manifest.json"):
        if (folder / name).is_file():
            plain = {**json.loads((folder / name).read_text()), "certificate": certificate}
            if name == "audit.json":
                audit(plain)
            plain["hash"] = content_hash(plain)
            (folder / name).write_text(json.dumps(plain))
    for name in ("report.html", "report.md"):
        (folder / name).unlink(missing_ok=True)


def option(name, value):
    return lambda plain: plain["facts"]["options"].update({name: value})


def both_deltas(plain):
    plain["delta"] = plain["facts"]["options"]["delta"] = 0.5


@pytest.mark.parametrize(
    ("name", "change", "told", "alone"),
    [
        ("classes", lambda plain: plain.update(delta=0.5), "its delta = 0.5 is not that of", True),
        ("classes", option("delta", 0.5), "not that of its options, 0.5", True),
        ("amounts", both_deltas, "its delta is 0.5, not the 0.05 of a first audit", False),
        ("amounts", option("alpha", 0.2), "its alpha is not that of the options", True),
        (
            "classes",
            option("alpha", 0.2),
            "its option alpha is 0.2, in audit.json it is 0.1",
            False,
        ),
        ("classes", option("candidates", 5), "the options say 5", True),
        ("classes", option("positive", "no"), "its option positive is 'no'", False),
        ("groups", option("largest_group", 9), "its option largest_group is 9", False),
        ("amounts", option("loss_bound", 9.0), "its option loss_bound is 9.0", False),
    ],
)
def test_an_edited_option_with_new_hashes_is_found_without_the_data(
    name, change, told, alone, place
):
    resealed(place / name, dict)  # edits nothing
    found = verify_folder(place / name)
    assert found
    assert "the certificate's options from audit.json" in found.checked
    resealed(place / name, change)
    found = verify_folder(place / name)
    assert any(told in line for line in found.differences), found.differences
    (place / name / "audit.json").unlink()  # by the certificate itself, too
    assert bool(verify_folder(place / name)) != alone


def test_an_edited_turn_or_no_options_of_the_audit_are_found(place):
    resealed(place / "classes", dict, lambda plain: plain["numbers"].update(turn=2))
    (line,) = verify_folder(place / "classes").differences
    assert "its delta is 0.05, not the 0.00759" in line
    assert "of a second audit" in line
    resealed(place / "classes", dict, lambda plain: plain["numbers"].pop("options"))
    (line,) = verify_folder(place / "classes").differences
    assert "does not say with which options" in line


def test_other_data_and_another_model(place, shell):
    shell.frame(600, seed=1).to_csv("other.csv", index=False)
    result = shell.run("verify classes --data other.csv")
    assert result.exit_code == 1
    assert "other.csv: the rows are not the ones that the certificate was made on" in result.stdout
    assert result.stdout.count("differs") == 1
    (place / "classes" / "model").rename("aside")
    (place / "groups" / "model").rename(place / "classes" / "model")
    assert (
        "model: its certificate is not that of certificate.json"
        in shell.run("verify classes").stdout
    )


def test_a_tampered_model(place, shell):
    file = next((place / "classes" / "model").glob("*.skops"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    result = shell.run("verify classes")
    assert result.exit_code == 1
    assert "was changed after it was written" in result.stdout


def test_without_a_model_or_a_page(place, shell):
    import shutil

    shutil.rmtree(place / "classes" / "model")
    (place / "classes" / "report.html").unlink()
    result = shell.run("verify classes --data t.csv")
    assert result.exit_code == 0
    assert "not checked  the model: it is not in the folder" in result.stdout
    assert "facts from model and rows" not in result.stdout
    (place / "classes" / "audit.json").unlink()
    assert shell.run("verify classes").exit_code == 0
    assert "does not say how its data were read" in shell.refusal("verify classes --data t.csv")


def test_a_page_of_another_version_is_not_rendered_again(place, shell):
    path = place / "classes" / "audit.json"
    plain = {**json.loads(path.read_text()), "surelearn": "0.0.1"}
    path.write_text(json.dumps({**plain, "hash": content_hash(plain)}))
    result = shell.run("verify classes")
    assert result.exit_code == 0
    assert "not checked  report.html: surelearn 0.0.1 wrote it" in result.stdout


def test_refusals(place, shell):
    assert "nowhere has no certificate.json" in shell.refusal("verify nowhere")
    assert "does not exist" in shell.refusal("verify classes --data nothing.csv")
    (place / "classes" / "audit.json").write_text("{}")
    assert "this is not an audit" in shell.refusal("verify classes")
    (place / "classes" / "certificate.json").write_text("{")
    assert "this is not JSON" in shell.refusal("verify classes")
