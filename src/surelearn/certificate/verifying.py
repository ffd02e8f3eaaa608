"""Certificates checked again: claims from facts, facts from models and rows, records from fits."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy.typing as npt

from surelearn.bounds.holdout import CONTENTS_IID, GROUPS_IID, IID
from surelearn.certificate.facts import (
    KEPT_APART,
    TOLERANCE,
    Facts,
    same_value,
    withheld,
)
from surelearn.claim import Claim, find_theorem
from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows, is_fingerprint_of
from surelearn.measurement import Measurement
from surelearn.operating.sets import QUANTITIES as SET_QUANTITIES
from surelearn.plain import (
    Withheld,
    freeze,
)
from surelearn.record import Within, find_record
from surelearn.types import Model, RowsLike

if TYPE_CHECKING:
    from surelearn.certificate.certificate import Certificate

_ALTERED = "the certificate was changed after it was written: its hash is not that of its content"
OTHER_ROWS = "the rows are not the ones that the certificate was made on"
SECOND_MODEL = "second_model"  # facts of one that was given columns that the first was not


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was checked, what differs, and what could not be checked. True if nothing differs."""

    checked: tuple[str, ...]
    differences: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self:
            return f"verified: {', '.join(self.checked)}"
        return "not verified:\n" + "\n".join(f"  {line}" for line in self.differences)


def _against_options(certificate: Certificate) -> Iterator[str]:
    """In what the claims, or δ, are other than the options say that `certify` was given."""
    options = certificate.facts.options
    if "candidates" not in options or "delta" not in options:
        return
    # beside a second model, the first has three quarters of δ
    shares = (1.0, 0.75) if SECOND_MODEL in certificate.facts.hashes else (1.0,)
    asked: object = options["delta"]
    if not isinstance(asked, (int, float)):
        yield f"the delta of its options is not a number: {asked!r:.60}"
    elif not any(math.isclose(asked, part * certificate.delta) for part in shares):
        yield f"its delta = {certificate.delta:.6g} is not that of its options, {asked:.6g}"
    stated = ["alpha", "largest_group", "weight_bound"]
    stated += ["loss_bound"] if options.get("task") == "regression" else []
    for claim in certificate.together:
        if any(key.startswith(f"{SECOND_MODEL}.") for key in claim.sources.values()):
            continue
        if claim.candidates != options["candidates"]:
            yield (
                f"{claim.label}: it pays for {claim.candidates} candidates, the options say"
                f" {options['candidates']}"
            )
        for name in stated:
            of = "sets" if name == "alpha" and claim.quantity in SET_QUANTITIES else name
            if name in claim.inputs and not same_value(claim.inputs[name], options.get(of)):
                yield f"{claim.label}: its {name} is not that of the options"


def _against_walk(certificate: Certificate) -> Iterator[str]:
    """In what the facts of a walk along thresholds, and its claim, are other than its counts and
    the options give.
    """
    if "thresholds" not in certificate.facts.options:
        return
    try:
        walk = Measurement.from_options(certificate.facts.options).walk
        if walk is None or isinstance(certificate.facts.values.get("walk.losses"), Withheld):
            return
        again = freeze(walk.end(certificate.facts.values))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        yield f"its walk along thresholds cannot be read: {error}"
        return
    for name, value in again.items():
        if not same_value(value, certificate.facts.values.get(name)):
            yield f"fact {name!r} is not what the walk along the thresholds gives"
    for claim in certificate.claims:
        stated = {"level": walk.requirement.level, "loss_bound": walk.loss_bound}
        stated |= {"delta": walk.delta}
        if "step" not in claim.inputs:
            continue
        for name, value in stated.items():
            if name in claim.inputs and not same_value(claim.inputs[name], value):
                yield f"{claim.label}: its {name} is not that of the options"


def _against_sets(certificate: Certificate) -> Iterator[str]:
    """In what claims about prediction sets are others than the options give."""
    options = certificate.facts.options
    for claim in certificate.claims:
        if claim.quantity not in SET_QUANTITIES:
            continue
        # recorded scores pay for two readings: their threshold is that of a smaller δ
        found_at = (options.get("sets_delta"), 2 * (options.get("sets_delta") or 0.0))
        if not any(same_value(claim.inputs.get("delta"), each) for each in found_at):
            yield f"{claim.label}: its delta is not that of the options, which found its threshold"
        cut = certificate.facts.values.get(
            claim.sources.get("covered", "").removesuffix(".covered") + ".threshold"
        )
        if not isinstance(cut, float):
            yield f"{claim.label}: there is no threshold of its sets"


def _against_blocks(certificate: Certificate) -> Iterator[str]:
    """In what numbers of blocks of rows are others than those of all rows, and their range another than
    the options say.
    """
    values, options = certificate.facts.values, certificate.facts.options
    for key in values:
        name, _, fact = key.rpartition(".")
        if fact != "block_sizes":
            continue
        n = values.get(f"{name}.n", values.get("loss.n"))  # differences are of all rows
        try:
            sizes, means, variances = (
                [float(one) for one in values[f"{name}.block_{of}"]]
                for of in ("sizes", "means", "variances")
            )
            rows = math.fsum(sizes)
            mean = math.fsum(map(math.prod, zip(sizes, means, strict=True))) / max(rows, 1)
            off = [v + (m - mean) ** 2 for m, v in zip(means, variances, strict=True)]
            spread = math.fsum(map(math.prod, zip(sizes, off, strict=True))) / max(rows - 1, 1)
        except (TypeError, ValueError, KeyError, OverflowError):
            yield f"the blocks of {name!r} cannot be read"
            continue
        wanted = (n, values.get(f"{name}.mean"), values.get(f"{name}.variance"))
        # a mean of differences may be next to nothing: the size of the numbers is what is compared
        scale = max(map(abs, means), default=0.0)
        if not all(
            isinstance(other, int | float) and abs(one - other) <= TOLERANCE * (size + abs(other))
            for one, other, size in zip(
                (rows, mean, spread), wanted, (0, scale, scale**2), strict=True
            )
        ):
            yield f"fact {name!r} is not what its blocks give"
    try:
        low, high = map(float, options.get("loss_range") or (0.0, 1.0))
    except (TypeError, ValueError):
        low = high = math.nan
    for claim in certificate.claims:
        if "sizes" not in claim.sources:
            continue
        stated = {"low": low, "high": high, "span": high - low}
        for name in stated.keys() & claim.inputs.keys():
            if not same_value(claim.inputs[name], stated[name]):
                yield f"{claim.label}: its {name} is not that of the options"


def verify_claims(
    certificate: Certificate,
    measured: Mapping[str, Any] | None,
    model: Model,
    X: RowsLike | None,
    y: npt.ArrayLike | None,
    columns: Mapping[str, Any],
) -> Verification:
    """Every claim recomputed from the facts, hashes compared, and the facts with ``measured``."""
    unread = [claim for claim in certificate.claims if withheld(claim.inputs)]
    checked = [f"{len(certificate.claims) - len(unread)} claims from facts"]
    differences: list[str] = []
    if certificate.altered:
        differences.append(_ALTERED)
    for claim in certificate.claims:
        differences += [
            f"{claim.label}: {problem}" for problem in _problems(claim, certificate.facts)
        ]
    differences += [
        *_against_options(certificate),
        *_against_walk(certificate),
        *_against_sets(certificate),
        *_against_blocks(certificate),
    ]
    spent = math.fsum(claim.delta for claim in certificate.together)
    if spent > certificate.delta * (1 + TOLERANCE):
        differences.append(
            f"the claims that hold together spend {spent:.6g}, more than delta ="
            f" {certificate.delta:.6g}"
        )
    for name, other in (("model", model), ("baseline", columns.get("baseline"))):
        if other is not None:
            checked.append(f"hash of the {name}")
            if UNHASHED in (
                found := (fingerprint_model(other), certificate.facts.hashes.get(name))
            ):
                differences.append(
                    f"the {name} is a plain function: its identity cannot be verified"
                )
            elif found[0] != found[1] and not is_fingerprint_of(other, found[1]):
                differences.append(f"the {name} is not the one that was certified")
    if X is not None:
        checked.append("hash of the rows")
        if fingerprint_rows(X, y) != certificate.facts.hashes.get("rows"):
            differences.append(OTHER_ROWS)
    if measured is not None:
        checked.append("facts from model and rows")
        differences += _changed_facts(certificate, measured, columns)
    unchecked = tuple(
        f"{claim.label}, {find_theorem(claim.theorem).name}: {KEPT_APART}" for claim in unread
    )
    return Verification(checked=tuple(checked), differences=tuple(differences), unchecked=unchecked)


def _changed_facts(
    certificate: Certificate, measured: Mapping[str, Any], columns: Mapping[str, Any]
) -> list[str]:
    stored = certificate.facts.values
    keys = {*measured, *stored}
    given = {
        "baseline": columns.get("baseline", columns.get("baseline_losses")),
        "novel": columns.get("novel"),
    }
    absent = {SECOND_MODEL, *(name for name, value in given.items() if value is None)}
    if not columns.get("further"):
        absent |= {
            f"further[{i}]" for i in range(len(certificate.facts.options.get("further", ())))
        }
    keys = {key for key in keys if key.split(".")[0] not in absent}
    changed = [key for key in sorted(keys) if not same_value(measured.get(key), stored.get(key))]
    return [f"fact {key!r} is not what model and rows give" for key in changed]


def verify_fit(
    certificate: Certificate,
    model: Model = None,
    X: RowsLike | None = None,
    y: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Verification:
    """Write a learner's certificate again from its record; with the model compare the record; with
    rows measure it again.

    What neither the model nor the rows tell is named as unchecked, with the reason.
    """
    facts, checked = certificate.facts, ["claims from the record"]
    unchecked: list[str] = []
    differences = [_ALTERED] if certificate.altered else []
    try:
        record = find_record(facts.record).read(facts.values)
        fitted = replace(facts, setting=record.setting)
        again = certificate.of_record(record, fitted, certificate.version)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        return Verification(
            checked=(), differences=(*differences, f"its record cannot be read: {error}")
        )
    differences += _differences(again, certificate)
    facts = replace(facts, values=record.values())  # under names of today
    if model is not None:
        checked.append("the model's record")
        differences += _not_the_models(facts, model)
    if X is not None and model is None:
        unchecked.append("the record against the rows: pass the model, too")
    elif X is not None and model is not None:
        checked.append("the record from model and rows")
        try:
            measured = _measured_again(model, facts, X, y, sample_weight)
        except ValueError as error:
            differences.append(f"the rows are not those of the fit: {error}")
        else:
            changed = [
                name
                for name, value in measured.items()
                if not _agrees(value, facts.values.get(name))
            ]
            differences += [f"{name}: not what model and rows give" for name in changed]
            untold = record.untold()
            silent = [
                name
                for name, value in facts.values.items()
                if value is not None and name not in {*measured, *untold}
            ]
            unchecked += [
                f"{name}: {reason}" for name, reason in untold.items() if name not in measured
            ]
            unchecked += [
                f"{name}: of a fit like this, model and rows do not tell it" for name in silent
            ]
    return Verification(
        checked=tuple(checked), differences=tuple(differences), unchecked=tuple(unchecked)
    )


def _measured_again(
    model: Model,
    facts: Facts,
    X: RowsLike,
    y: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> dict[str, Any]:
    """The record's fields that a model and its rows tell: a learner of ours by itself, any
    other by its twin.
    """
    if hasattr(model, "record_"):
        return model.measure_again(X, y, sample_weight=sample_weight)
    training = importlib.import_module("surelearn.training")  # which knows the learners
    return training.measure_again(model, facts.values, X, y, sample_weight)


def _not_the_models(facts: Facts, model: Model) -> list[str]:
    """In what facts differ from those that a model keeps of its own fit."""
    own = getattr(model, "certificate_", None)
    if not is_fingerprint_of(model, facts.hashes.get("model")):
        return ["the model is not the one that was certified"]
    if own is None or own.facts == facts:  # a model that others fitted keeps no record
        return []
    earlier = getattr(model, "described_earlier", None)
    if earlier is not None and replace(own.facts, subject=earlier()) == facts:
        return []
    names = sorted({*facts.values, *own.facts.values})
    told = [
        name for name in names if not same_value(own.facts.values.get(name), facts.values.get(name))
    ]
    return [f"{name}: not what the model recorded" for name in told or ["its description"]]


def _differences(again: Certificate, stored: Certificate) -> Iterator[str]:
    """In what a certificate differs from the one that its record gives."""
    if again.facts.setting != stored.facts.setting:
        yield "its setting is not the record's"
    if not same_value(again.delta, stored.delta):
        yield "its delta is not the one that its claims were made at"
    for what, one, other in (
        ("claims", again.claims, stored.claims),
        ("reasons", again.lacking, stored.lacking),
    ):
        if len(one) != len(other):
            yield f"it has {len(other)} {what}, its record gives {len(one)}"
    for one, other in zip(again.claims, stored.claims, strict=False):
        for name in Claim.__dataclass_fields__:
            if not same_value(getattr(one, name), getattr(other, name)):
                yield f"{one.label}, {one.theorem}: its record gives another {name}"
    for one, other in zip(again.lacking, stored.lacking, strict=False):
        if one != other:
            yield f"{one.label}: its record gives another reason why it is not claimed"


def _agrees(measured: object, recorded: object) -> bool:
    """Whether a field of a record is what was measured again, up to rounding."""
    if isinstance(measured, Within):
        return (
            isinstance(recorded, int | float)
            and abs(measured.value - recorded) <= measured.tolerance
        )
    if not isinstance(measured, tuple):
        measured = freeze(measured)
    if isinstance(measured, tuple) and isinstance(recorded, tuple):
        each, other = cast("tuple[Any, ...]", measured), cast("tuple[Any, ...]", recorded)
        return len(each) == len(other) and all(map(_agrees, each, other))
    if (
        isinstance(measured, int | float)
        and isinstance(recorded, int | float)
        and bool not in map(type, (measured, recorded))
    ):
        return math.isclose(measured, recorded, rel_tol=1e-6, abs_tol=1e-12)
    return measured == recorded


def _problems(claim: Claim, facts: Facts) -> list[str]:
    """Everything in which a claim differs from its theorem and from the facts."""
    theorem = find_theorem(claim.theorem)
    problems: list[str] = []
    for name, key in claim.sources.items():
        if key not in facts or not same_value(facts[key], claim.inputs.get(name)):
            problems.append(f"its {name} is not the fact {key!r}")
    if (claim.relation, claim.evidence) != (theorem.claims.relation, theorem.claims.evidence):
        problems.append(f"{theorem.name} does not make a claim of this kind")
    given = {*claim.assumptions, *claim.met}
    given |= {IID} if {GROUPS_IID, CONTENTS_IID} & given else set()
    if missing := [line for line in theorem.assumes if line not in given]:
        problems.append(f"it leaves out an assumption: {missing[0]}")
    if isinstance(claim.confidence, str):
        if claim.confidence != theorem.claims.holds:
            problems.append(f"{theorem.name} does not hold {claim.confidence}")
    elif not math.isclose(1 - claim.confidence, claim.delta, rel_tol=1e-9, abs_tol=1e-15):
        problems.append("its confidence does not follow from its delta")
    if withheld(claim.inputs):
        return problems
    try:
        value = claim.recompute()
    except (ValueError, TypeError) as error:
        return [*problems, f"{theorem.name} refuses its inputs: {error}"]
    if not same_value(value, claim.value):
        problems.append(f"{theorem.name} gives {value}, not {claim.value}")
    return problems
