"""`verify_folder`: is everything in an audit's folder what its facts, its model and its data
give?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from inspect import signature
from math import isclose
from pathlib import Path
from typing import Any

from surelearn import files
from surelearn.auditing.answers.flow import asked_of_answers, certify_units
from surelearn.auditing.answers.models import Models, ask_models
from surelearn.auditing.answers.one_pass import verify_counted
from surelearn.auditing.answers.operating import answering, divide_units, tells_apart
from surelearn.auditing.answers.read_once import read_counted
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.units import Units, read_units
from surelearn.auditing.claims import Withholding, asked_of, of_second_model
from surelearn.auditing.dividing import DataSource
from surelearn.auditing.looks import kept_losses
from surelearn.auditing.options import Options
from surelearn.auditing.sections.novelty import compare_table
from surelearn.certificate import OTHER_ROWS, Certificate, Verification
from surelearn.certification import certify, uncounted
from surelearn.data import DataError, Table, read_table
from surelearn.documents import MOST_BYTES, reading
from surelearn.measurement import LossBoundError, Measurement
from surelearn.operating import LADDER_RULE, Requirement, Rungs
from surelearn.persistence import MANIFEST, Saved, read_model
from surelearn.persistence.folder import is_settled
from surelearn.plain import freeze
from surelearn.report import Audit
from surelearn.selection.ledger import allowance, ordinal, secret_salt
from surelearn.selection.split import RULE, split_rows
from surelearn.subject.refitting import take
from surelearn.version import __version__


def verify_folder(
    folder: str | Path, data: DataSource | None = None, models: Models | None = None
) -> Verification:
    """Recompute every claim of an audit's folder from its facts; given the data, the facts from
    model and data.

    Parameters
    ----------
    folder : what `surelearn audit` wrote
    data : the audited table: the file, a built-in set's name or a data frame
    models : where models in files answered: the same ones, to be asked again

    Raises
    ------
    ValueError
        if there is nothing to verify: no certificate, or files of another kind

    Examples
    --------
    >>> verify_folder("nowhere")
    Traceback (most recent call last):
    ...
    ValueError: nowhere has no certificate.json: name the folder that `surelearn audit` wrote
    """
    folder = Path(folder)
    certificate = Certificate.from_json(_text(folder, "certificate.json"))
    found = certificate.with_samples(kept_losses(certificate)).verify()
    checked, unchecked = list(found.checked), [] if data is not None else list(found.unchecked)
    differences = [f"certificate.json: {line}" for line in found.differences]
    audit = None
    if (folder / "audit.json").is_file():
        audit = _check_numbers(folder, certificate, checked, differences)
        _check_pages(folder, audit, checked, unchecked, differences)
        if audit.unfinished:
            unchecked.append(f"unfinished, not measured yet: {', '.join(audit.missing)}")
    if not is_settled(folder):
        differences.append(
            "the folder was being written when the program was killed: run the same command again"
        )
    saved = None
    answers = "answers" in certificate.facts.options
    if not answers:
        saved = _check_model(folder, certificate, checked, unchecked, differences)
    if data is not None:
        if answers:
            _check_answers(data, certificate, models, audit, checked, unchecked, differences)
        elif models is not None:
            raise ValueError(f"{folder} holds its own model: leave out --model")
        elif audit is None or "reading" not in audit.numbers:
            raise ValueError(
                f"{folder} does not say how its data were read: only an audit of a table is"
                " verified from data"
            )
        else:
            _check_data(data, audit, certificate, saved, checked, unchecked, differences)
    return Verification(
        checked=tuple(checked), differences=tuple(differences), unchecked=tuple(unchecked)
    )


def _text(folder: Path, name: str) -> str:
    try:
        return files.read(folder / name, most=MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        raise ValueError(
            f"{folder} has no {name}: name the folder that `surelearn audit` wrote"
        ) from None


def _check_numbers(
    folder: Path, certificate: Certificate, checked: list[str], differences: list[str]
) -> Audit:
    try:
        audit = Audit.from_json(_text(folder, "audit.json"))
    except ValueError as error:
        raise ValueError(f"{folder / 'audit.json'}: {error}") from None
    checked.append("audit.json")
    if audit.altered:
        differences.append(
            "audit.json: it was changed after it was written: its hash is not that of its content"
        )
    if audit.certificate != certificate:
        differences.append("audit.json: its certificate is not that of certificate.json")
    if audit.version == __version__:
        checked.append("the certificate's options from audit.json")
        differences += [f"certificate.json: {line}" for line in _not_as_asked(audit, certificate)]
    if audit.proved:
        checked.append(f"{len(audit.proved)} claims of sections from their inputs")
        found = replace(certificate, claims=audit.proved, lacking=(), altered=False).verify()
        differences += [f"audit.json: {line}" for line in found.differences]
    return audit


def _not_as_asked(audit: Audit, certificate: Certificate) -> Iterator[str]:
    """In what a certificate is other than the options of its audit give: δ by which look it was,
    and what `certify` was given or takes by default.
    """
    try:
        turn, given = audit.numbers["turn"], audit.numbers["options"]
        options = Options(**given)
        delta = allowance(options.delta, turn)
        answers = audit.numbers.get("answers")
        roles = None if answers is None else Roles.from_dict(answers)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        yield "audit.json does not say with which options it was made"
        return
    if not isclose(certificate.delta, delta):
        yield (
            f"its delta is {certificate.delta:.6g}, not the {delta:.6g} of a {ordinal(turn)} audit"
            f" with delta = {options.delta:.6g}"
        )
    made = certificate.facts.options
    usual = {name: one.default for name, one in signature(certify).parameters.items()}
    names = ["alpha", "candidates", "cost", "largest_group", "loss", "loss_bound", "positive"]
    names += ["target_range"]
    task = made.get("task")
    if roles is not None:
        task = task if task in ("regression", "losses") else "classification"
        asked = asked_of_answers(task, roles, options)
        names += ["weight_bound", "better", "loss_range"]
        names.remove("loss")
    else:
        asked = asked_of(options, "regression" if task == "regression" else "classification")
    for name in names:
        wanted = freeze(asked.get(name, usual[name]))
        # no loss bound is taken that was raised after rows contradicted it, and no loss is the usual
        if name not in made or made[name] == wanted or (name == "loss_bound" and not made[name]):
            continue
        if name == "loss" and wanted is None and made[name] == Measurement.loss:
            continue
        yield f"its option {name} is {made[name]!r}, in audit.json it is {wanted!r}"
    for name in ("sets", "per_class"):
        wanted = getattr(options, name)
        if made.get(name) != (wanted or None):
            yield f"its option {name} is {made.get(name)!r}, in audit.json it is {wanted!r}"
    if "require" in made and made["require"] != options.require:
        yield f"it requires {made['require']!r}, in audit.json that is {options.require!r}"


def _check_pages(
    folder: Path, audit: Audit, checked: list[str], unchecked: list[str], differences: list[str]
) -> None:
    for name, render in (("report.html", audit.to_html), ("report.md", audit.to_markdown)):
        if not (folder / name).is_file():
            continue
        if audit.version != __version__:
            unchecked.append(f"{name}: surelearn {audit.version} wrote it, this is {__version__}")
            continue
        checked.append(f"{name} from audit.json")
        with reading("audit.json"):
            page = render().encode(errors="backslashreplace")
        if files.read(folder / name, most=MOST_BYTES) != page:
            differences.append(f"{name}: it is not the page that audit.json gives")


def _check_model(
    folder: Path,
    certificate: Certificate,
    checked: list[str],
    unchecked: list[str],
    differences: list[str],
) -> Saved | None:
    if not (folder / "model" / MANIFEST).is_file():
        unchecked.append("the model: it is not in the folder")
        return None
    try:
        saved = read_model(folder / "model")
    except ValueError as error:
        differences.append(str(error))
        return None
    checked.append("model")
    if saved.certificate != certificate:
        differences.append("model: its certificate is not that of certificate.json")
    return saved


def _check_answers(
    data: DataSource,
    certificate: Certificate,
    models: Models | None,
    audit: Audit | None,
    checked: list[str],
    unchecked: list[str],
    differences: list[str],
) -> None:
    """Read the answers as they were read, and measure everything again."""
    options = certificate.facts.options
    if isinstance(data, Table):
        raise ValueError("name the file of answers, or give its data frame: a table has a target")
    with reading("certificate.json"):
        roles = Roles.from_dict(options["answers"])
    if models is None and roles.answered_by is not None:
        unchecked.append(f"everything from the data: pass --model with {roles.answered_by}")
        return
    if models is not None and (others := list(_other_files(roles, models))):
        differences += others
        return
    positive = options.get("positive")
    try:
        if options.get("one_pass"):
            counted = read_counted(data, roles, options.get("positive"))
            _add(
                verify_counted(certificate, counted), counted.name, checked, unchecked, differences
            )
            return
        walked = "thresholds" in options
        units = (
            read_units(data, roles, positive, walked=walked)
            if models is None
            else ask_models(data, roles, positive, _as_named(roles, models), walked=walked)[0]
        )
        if walked and not tells_apart(units) and secret_salt(make=False) is None:
            unchecked.append(
                "everything from the data: rows were drawn by coins, and the secret salt is not here"
            )
            return
        if walked:
            units = _walked(units, certificate, audit, unchecked, differences)
    except (DataError, LossBoundError) as error:
        differences.append(str(error))
        return
    found = certificate.verify(units.model, units.X, units.truth, **units.columns)
    _add(found, units.name, checked, unchecked, differences)
    if certificate.together:  # else rows contradict what claims rest on
        checked.append("claims from the answers, made again")
        differences += [f"{units.name}: {line}" for line in _not_made(certificate, units, roles)]
    unchecked.append("the words of the page: verdict, sections")


def _not_made(certificate: Certificate, units: Units, roles: Roles) -> Iterator[str]:
    """In what a certificate's claims are others than those that are made of the answers today."""
    options = certificate.facts.options
    names = ("positive", "cost", "loss_bound", "largest_group", "require", "sets", "target_range")
    given: dict[str, Any] = {name: options.get(name) for name in names}
    given |= {name: options[name] for name in ("alpha", "per_class") if name in options}
    if options.get("task") == "regression":
        given["loss"] = options["loss"]
    rungs = None
    if "thresholds" in options:
        rungs = Rungs(tuple(options["thresholds"]), None, 0.0, 0)
    asked = Options(**given, delta=certificate.delta)
    try:
        with uncounted():
            again = certify_units(units, roles, asked, Withholding(), rungs=rungs)
    except ValueError as error:
        yield f"no certificate is made of these answers: {error}"
        return

    def said(made: Certificate) -> list[tuple[object, ...]]:
        return [
            (c.quantity, c.label, c.relation, c.theorem, round(c.delta, 12), c.covers.population)
            for c in made.claims
        ]

    now, then = said(again), said(certificate)
    yield from (
        f"its claim {one[1]!r} is not made of these answers" for one in then if one not in now
    )
    yield from (f"its claim {one[1]!r} is missing" for one in now if one not in then)


def _as_named(roles: Roles, models: Models) -> Models:
    """The models under the names that their files had."""
    named = [
        None if model is None else replace(model, name=str(stated).rpartition(", ")[0])
        for stated, model in ((roles.answered_by, models.model), (roles.rival_by, models.rival))
    ]
    return Models(named[0] or models.model, named[1])


def _other_files(roles: Roles, models: Models) -> Iterator[str]:
    """Which models are not those that answered, by the hashes of their files."""
    if roles.answered_by is None:
        raise ValueError(
            "the certificate is about answers that were written down: leave out --model"
        )
    pairs = (
        ("--model", roles.answered_by, models.model),
        ("--against", roles.rival_by, models.rival),
    )
    for option, stated, model in pairs:
        if stated is None and model is not None:
            yield f"{option} {model.name}: the certificate compares with no other model"
        elif stated is not None and model is None:
            yield f"{option} is missing: {stated} answered, too"
        elif stated is not None and model is not None:
            digest = stated.rpartition(", ")[2]
            if model.digest != digest:
                yield f"{option} {model.name}: its file is another, {model.digest}, not {digest}"


def _walked(
    units: Units,
    certificate: Certificate,
    audit: Audit | None,
    unchecked: list[str],
    differences: list[str],
) -> Units:
    """The units that a threshold was chosen on, with the model that answers from it on."""
    options = certificate.facts.options
    told = "the thresholds that were walked along"
    asked = Options(positive=options.get("positive"), cost=options.get("cost"))
    if audit is not None:
        asked = replace(asked, delta=audit.numbers["options"]["delta"])
    requirement = Requirement.parse(options["require"])
    walked, rungs = divide_units(units, requirement, asked)
    if audit is None:
        unchecked.append(f"{told}: they depend on the delta of all tries")
    elif (rule := options.get("ladder")) not in (None, LADDER_RULE):
        differences.append(f"{units.name}: no rule {rule} of fixing thresholds is known here")
    elif rule is None and tuple(rungs.thresholds) != tuple(options["thresholds"]):
        unchecked.append(f"{told}: an earlier version fixed them by another rule")
    elif tuple(rungs.thresholds) != tuple(options["thresholds"]):
        differences.append(f"{units.name}: {told} are not those that its other rows give")
    return answering(walked, float(certificate.facts["walk.threshold"]), requirement)


def _add(
    found: Verification,
    name: str,
    checked: list[str],
    unchecked: list[str],
    differences: list[str],
) -> None:
    """What was found with the data called ``name``, beside what was found without them."""
    checked += [line for line in found.checked if line not in checked]
    unchecked += found.unchecked
    new = [line for line in found.differences if f"certificate.json: {line}" not in differences]
    if OTHER_ROWS in new:  # then all facts differ, which says nothing more
        new = [line for line in new if not line.startswith("fact ")]
    differences += [f"{name}: {line}" for line in new]


def _check_data(
    data: DataSource | None,
    audit: Audit,
    certificate: Certificate,
    saved: Saved | None,
    checked: list[str],
    unchecked: list[str],
    differences: list[str],
) -> None:
    # an npz was read otherwise up to 0.2
    table = read_table(data, **{"joined": False, **audit.numbers["reading"]})
    options = audit.numbers["options"]
    rule = audit.numbers["split"]["rule"] if "split" in audit.numbers else 1
    salt = None if rule else secret_salt(make=False)
    if rule == 0 and salt is None:
        unchecked.append(
            "everything from the data: each row's purpose was its own coin, and the secret salt is"
            " not here"
        )
        return
    split = split_rows(
        table.row_hashes,
        groups=table.groups,
        time=None if table.time is None else table.frame[table.time].to_numpy(),
        certify=options["certify_fraction"],
        select=options["select_fraction"],
        rule=rule or RULE,
        salt=salt,
    )
    columns = list(audit.numbers["columns"])
    if missing := [name for name in columns if name not in table.X.columns]:
        differences.append(f"{table.name}: it has no usable column {missing[0]!r}")
        return
    X, y = take(table.X[columns], split.certify), table.y[split.certify]
    groups = None if table.groups is None else table.groups[split.certify]
    compared = (
        compare_table(table, split, columns)
        if {"novel.n", "novel.losses"} & {*certificate.facts.values}
        else None
    )
    novel = None if compared is None else compared.novel
    found = certificate.verify(
        None if saved is None else saved.model, X, y, groups=groups, novel=novel
    )
    _add(found, table.name, checked, unchecked, differences)
    if "baseline" in certificate.facts.hashes:
        unchecked.append("what is said of the model compared with: it is not in the folder")
    if audit.proved:
        unchecked.append("the inputs of what is proved in sections: they were not measured again")
    for claim in certificate.together:
        # until 0.2 the facts of a second model were not kept
        if not claim.sources or of_second_model(claim):
            unchecked.append(f"{claim.label}: it is about a model that is not in the folder")
