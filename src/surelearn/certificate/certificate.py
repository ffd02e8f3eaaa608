"""Certificates: facts, what follows from them, and what does not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy.typing as npt

from surelearn import stated
from surelearn.bounds.holdout import IID
from surelearn.bounds.stability import FIXED_BEFORE
from surelearn.certificate.facts import (
    KEPT_APART,
    Facts,
    is_sample,
    same_value,
    withheld,
    without_samples,
)
from surelearn.certificate.text import as_html, as_text
from surelearn.certificate.verifying import OTHER_ROWS, Verification, verify_claims, verify_fit
from surelearn.claim import Claim, check_key, find_theorem
from surelearn.documents import check_format, checked, is_altered, parse_json, reading, sealed
from surelearn.lacking import Lacking
from surelearn.measurement import Measurement, measure
from surelearn.operating import PredictionSets
from surelearn.operating.sets import QUANTITIES as SET_QUANTITIES
from surelearn.plain import (
    Withheld,
    content_hash,
    freeze,
    sample_hash,
)
from surelearn.record import Record, Writer
from surelearn.renamed import Words, from_fit_rows, quantity_of_today
from surelearn.slicing import Cuts
from surelearn.subject.recorded import from_columns
from surelearn.types import Model, RowsLike

FORMAT = "surelearn-certificate"
VERSION = 5  # up to 4 quantities were named in words: see `renamed`
FIXED_BEFOREHAND = ", if its parameters were fixed beforehand"
AT_LEAST_ERRORS = "at least the error rate"
_BASELINES = {
    "risk": "baseline_risk",
    from_fit_rows("risk"): "baseline_risk",
    "mean_cost": "baseline_cost",
}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What is guaranteed about a model: facts, the claims that follow, and the claims that do not,
    with reasons.

    Statistical, not regulatory. Claims with standing "together" hold simultaneously with
    probability 1 − ``delta``. ``altered`` says that the file it was read from does not have the
    content that its hash was made of. It is written, and hashed, in the ``version`` that it was
    read in, with its ``words`` for quantities, so that losses and watches that were kept under its
    hash are found.
    """

    facts: Facts
    claims: tuple[Claim, ...]
    lacking: tuple[Lacking, ...] = ()
    delta: float = 0.05
    altered: bool = field(default=False, compare=False)
    version: int = field(default=VERSION, compare=False)
    words: Words = field(default_factory=Words, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", tuple(self.claims))
        object.__setattr__(self, "lacking", tuple(self.lacking))
        if self.version > 4:
            for key in (*(c.quantity for c in self.claims), *(i.what for i in self.lacking)):
                check_key(key)

    def __getitem__(self, quantity: str) -> Claim:
        """The first claim about a quantity; a `KeyError` says why there is none."""
        made = {claim.quantity: claim for claim in reversed(self.claims)}
        quantity = quantity if quantity in made else quantity_of_today(quantity)
        if quantity in made:
            return made[quantity]
        reasons = [item.reason for item in self.lacking if item.what == quantity]
        raise KeyError(f"no claim about {quantity!r}" + (f": {reasons[0]}" if reasons else ""))

    @property
    def together(self) -> tuple[Claim, ...]:
        """The claims that hold simultaneously with probability 1 − ``delta``."""
        return tuple(claim for claim in self.claims if claim.standing == "together")

    def best(self, quantity: str, among: Iterable[str] | None = None) -> Claim:
        """The smallest upper (largest lower) bound on a quantity, honestly: each of K theorems
        recomputed at δ/K.

        Parameters
        ----------
        quantity : such as "risk"
        among : keys of theorems, fixed before seeing the data; by default every theorem this
            certificate considered for the quantity, also those that turned out not to apply. Claims
            in expectation never take part, nor do claims about another predictor, loss, population
            or set of rows than the first one's.
        """
        quantity = quantity_of_today(quantity)
        claims = [
            c
            for c in self.claims
            if c.quantity == quantity and c.with_probability and c.relation in ("<=", ">=")
        ]
        keys = {item.theorem for item in self.lacking if item.what == quantity and item.theorem}
        keys = set(among) if among is not None else keys | {claim.theorem for claim in claims}
        for key in keys:
            find_theorem(key)
        if not claims:
            raise ValueError(
                f"the certificate holds no claim about {quantity!r} with a stated probability"
            )
        first = claims[0]
        if first.family:
            raise ValueError(
                f"the claims about {quantity!r} are about several {first.family}s: none may be"
                " picked for its value"
            )
        same = (first.covers, first.relation, first.label)
        usable = [
            c for c in claims if c.theorem in keys and (c.covers, c.relation, c.label) == same
        ]
        if not usable:
            raise ValueError(f"none of {', '.join(sorted(keys))} made a claim about {quantity!r}")
        if any(withheld(claim.inputs) for claim in usable):
            raise ValueError(f"the bounds on {quantity!r} cannot be compared again: {KEPT_APART}")
        delta = max(claim.delta for claim in usable)
        again = [claim.at(delta, candidates=len(keys)) for claim in usable]
        return (min if first.relation == "<=" else max)(again, key=lambda claim: claim.value)

    def verify(
        self,
        model: Model = None,
        X: RowsLike | None = None,
        y: npt.ArrayLike | None = None,
        **columns: Any,
    ) -> Verification:
        """Recompute every claim from the stored facts; given model and rows, the facts from them.

        Parameters
        ----------
        model : the model; its hash is compared
        X, y : the certify rows; their hash is compared and, with ``model``, everything is measured
            again
        **columns : ``groups``, ``slices``, ``baseline``, ``novel``, ``losses``, ``baseline_losses``,
            ``weights`` and ``further`` as they were given to `certify`; slices made by
            `surelearn.slicing.cut` are in the certificate, and what it says of a baseline, of novel rows
            or of further rates that are not given stays unchecked. A certificate of losses is
            measured again from them, one of answers from ``answers`` and ``truth``, one that was
            read in one pass from ``counted``, what another pass found (its ``facts`` and ``hash``).
            ``sample_weight`` as it was given to ``fit``, for a learner's own certificate
        """
        if self.facts.record:
            return verify_fit(self, model, X, y, **columns)
        if {"answers", "truth"} <= columns.keys():
            model, rows, right, rest = self._of_answers(columns)
            return self.verify(model, rows, right, **rest)
        if "counted" in columns:
            counted = columns["counted"]
            measured = freeze(counted.facts(Measurement.from_options(self.facts.options)))
            found = verify_claims(self, measured, model, None, None, columns)
            checked = (*found.checked, "hash of the rows")
            other = () if counted.hash == self.facts.hashes.get("rows") else (OTHER_ROWS,)
            return replace(found, checked=checked, differences=(*found.differences, *other))
        measured = self._measure(model, X, y, columns)
        if measured is not None:
            return verify_claims(self.with_samples(measured), measured, model, X, y, columns)
        return verify_claims(self, None, model, X, y, columns)

    def _of_answers(self, columns: Mapping[str, Any]) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Model, rows and targets from answers and their truth, and the other columns."""
        rest = {name: v for name, v in columns.items() if name not in ("answers", "truth")}
        options, other = self.facts.options, columns.get("baseline")
        X, y, told = from_columns(
            columns["answers"],
            columns["truth"],
            None if hasattr(other, "predict") else other,
            options.get("task"),
            options.get("classes"),
        )
        if "baseline" in told:
            rest["baseline"] = told["baseline"]
        return told["model"], X, y, rest

    @property
    def sets(self) -> PredictionSets | None:
        """The prediction sets that are guaranteed; None where none are.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> from surelearn import certify
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LogisticRegression(max_iter=500).fit(X[::3], y[::3])
        >>> certificate = certify(model, X[1::3], y[1::3], sets=0.1)
        >>> certificate["set_coverage"].bound()
        '≥ 90.0%'
        >>> certificate.sets.labels(model, X[[2, 77]])
        [(0,), (2, 1)]
        """
        if not any(claim.quantity in SET_QUANTITIES for claim in self.together):
            return None
        return PredictionSets.of_facts(self.facts.options, self.facts.values)

    def _measure(
        self, model: Model, X: RowsLike | None, y: npt.ArrayLike | None, columns: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """The facts again, from model and rows or from losses per unit; None where these were
        not given.
        """
        what = self.facts.options
        by_model = model is not None and X is not None
        by_losses = columns.get("losses") is not None or (by_model and what.get("task") == "losses")
        if not (by_losses or by_model):
            return None
        if "slices" in what:
            columns = {"slices": Cuts.from_options(what["slices"]), **columns}
        measured = Measurement.from_options(what)
        rows = partial(self.facts.hashes.get, "rows", "")
        return freeze(measure(model, X, y, measured, rows_hash=rows, **columns))

    def published(self) -> Certificate:
        """The certificate as it may be passed on: in the place of losses per row (or group) stand
        their hashes and means.

        Whoever has them can build a model that looks better on these rows than it is.
        """
        claims = tuple(
            replace(claim, inputs=without_samples(claim.inputs)) for claim in self.claims
        )
        return replace(
            self,
            facts=replace(self.facts, values=without_samples(self.facts.values)),
            claims=claims,
        )

    def samples(self) -> dict[str, tuple[float, ...]]:
        """The losses per row (or group) that `published` leaves out, by their hashes."""
        held = [self.facts.values, *(claim.inputs for claim in self.claims)]
        found = [
            value for values in held for name, value in values.items() if is_sample(name, value)
        ]
        return {sample_hash(value): value for value in found}

    def with_samples(self, samples: Mapping[str, Any]) -> Certificate:
        """The certificate with its samples put back: by their hashes, or measured again under
        the names of the facts.
        """

        def filled(value: object, fact: str) -> Any:
            if not isinstance(value, Withheld):
                return value
            if value["withheld"] in samples:
                return samples[value["withheld"]]
            again: tuple[float, ...] | None = samples.get(fact)
            if not isinstance(again, tuple) or len(again) != value["n"]:
                return value
            return again if same_value(Withheld.of(again).mean(), value.mean()) else value

        values = {key: filled(value, key) for key, value in self.facts.values.items()}
        claims = [
            replace(
                claim,
                inputs={
                    n: filled(value, claim.sources.get(n, "")) for n, value in claim.inputs.items()
                },
            )
            for claim in self.claims
        ]
        return replace(self, facts=replace(self.facts, values=values), claims=tuple(claims))

    @property
    def hash(self) -> str:
        """``sha256:…`` of everything that the certificate says."""
        return content_hash(self._plain())

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON. Samples stand once, under facts; claims refer to
        them by ``sources``.
        """
        return sealed(self._plain())

    def _plain(self) -> dict[str, Any]:
        claims = [claim.to_dict() for claim in self.claims]
        for claim in claims:
            samples = [
                name for name in claim["sources"] if isinstance(claim["inputs"][name], list | dict)
            ]
            claim["inputs"] = {
                name: value for name, value in claim["inputs"].items() if name not in samples
            }
        plain = {
            "format": FORMAT,
            "version": self.version,
            "note": "statistical, not regulatory",
            "delta": self.delta,
            "claims": claims,
            **self._plain_lacking(),
            "facts": self.facts.to_dict(),
        }
        return plain if self.version > 4 else self.words.in_certificate(plain)

    def _plain_lacking(self) -> dict[str, Any]:
        """Version 4 had no labels; versions up to 3 said "absent" and "quantity"."""
        if self.version > 4:
            return {"lacking": [vars(item) for item in self.lacking]}
        held, name = ("lacking", "what") if self.version > 3 else ("absent", "quantity")
        return {
            held: [{name: i.what, "reason": i.reason, "theorem": i.theorem} for i in self.lacking]
        }

    def to_json(self, indent: int | None = 1) -> str:
        """Strict JSON; `from_json` reads it back to an equal certificate."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def of_record(cls, record: Record, facts: Facts, version: int = VERSION) -> Certificate:
        """The certificate that follows from a record alone; ``facts`` say whose it is, and at which
        δ. One of an earlier ``version`` has the claims that were made then.
        """
        writer = Writer(record, facts.options["delta"], facts.hashes["model"], version)
        record.write(writer)
        if any(map(needs_fixed_parameters, writer.claims)):
            facts = replace(facts, setting=f"{facts.setting}{FIXED_BEFOREHAND}")
        return cls(
            facts=facts,
            claims=tuple(writer.claims),
            lacking=tuple(writer.lacking),
            delta=writer.delta,
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Certificate:
        """Read what `to_dict` wrote; anything else is refused with a `ValueError` that says why."""
        version = check_format(plain, "a certificate", FORMAT, VERSION)
        with reading("the certificate"):
            altered = version > 1 and is_altered(plain)  # version 1 had no hash
            words = Words.of_certificate(plain) if version <= 4 else Words()
            plain = words.reversed().in_certificate(plain) if version <= 4 else plain
            facts = Facts.from_dict(plain["facts"])
            claims: list[Claim] = []
            for claim in plain["claims"]:
                read = {
                    name: facts[key]
                    for name, key in claim["sources"].items()
                    if name not in claim["inputs"]
                }
                claims.append(Claim.from_dict({**claim, "inputs": {**claim["inputs"], **read}}))
            lacking = [
                checked(_lacking(item, words))
                for item in (plain["lacking"] if version > 3 else plain["absent"])
            ]
            made = cls(
                facts=facts,
                claims=tuple(claims),
                lacking=tuple(lacking),
                delta=plain["delta"],
                altered=altered,
                version=version,
                words=words,
            )
            stated.fraction("the certificate's delta", checked(made).delta)
            return made

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read `to_json`'s text. Nothing in it is ever executed."""
        return cls.from_dict(parse_json(text))

    def mark(self, claim: Claim) -> str:
        """Why a claim is of no use: "vacuous", or "no better than always answering …" for errors
        and mean costs; or "".

        A headline is of use, however large, where the paired comparison guarantees a gain over
        every constant answer.
        """
        if claim.vacuous:
            return "vacuous"
        other, loss = _BASELINES.get(claim.quantity), claim.covers.loss
        if other is None or isinstance(claim.value, tuple):
            return ""
        if other == "baseline_risk" and loss != "zero_one" and AT_LEAST_ERRORS not in loss:
            return ""
        over = [
            c for c in self.together if c.quantity == "gain" and c.about("constant") is not None
        ]
        gains = [c.value for c in over if c.covers == claim.covers]
        if (
            claim.standing == "together"
            and gains
            and all(isinstance(gain, float) and gain > 0 for gain in gains)
        ):
            return ""
        constants = [(c.measured, c.about("constant")) for c in self.claims if c.quantity == other]
        errors = [
            (error, answer)
            for error, answer in constants
            if error is not None and answer is not None
        ]
        errors = errors or self._constants(by_cost=other == "baseline_cost")
        least, answer = min(errors, default=(math.inf, ""), key=lambda pair: pair[0])
        return f"no better than always answering {answer}" if claim.value >= least else ""

    def _constants(self, *, by_cost: bool) -> list[tuple[float, str]]:
        """What each constant answer errs or costs on the rows, from the classes' counts, beside
        another model's comparison.

        Nothing with groups, whose means are not kept for constant answers, nor for errors where
        they cost unequally.
        """
        if "baseline" not in self.facts.hashes or by_cost != bool(
            self.facts.options.get("by_cost")
        ):
            return []
        labels, facts = self.facts.options.get("classes", ()), self.facts
        if any(f"class[{label}].n" not in facts for label in labels):
            return []
        shares = {label: facts[f"class[{label}].n"] / facts["rows"] for label in labels}
        if not by_cost:
            return [(1 - share, str(label)) for label, share in shares.items()]
        positive = facts.options["positive"]
        missed, alarmed = facts.options["cost"] * shares[positive], 1 - shares[positive]
        return [(alarmed if label == positive else missed, str(label)) for label in labels]

    def rows(self) -> list[tuple[Claim, str]]:
        """The claims for display, each family (slices, classes, constants) as its worst member
        with a label.
        """
        shown: list[tuple[Claim, str]] = []
        seen: set[tuple[str, str, str]] = set()
        for claim in self.claims:
            family = (claim.family, claim.quantity, claim.standing)
            if claim.family and family in seen:
                continue
            seen.add(family)
            members = (
                [c for c in self.claims if (c.family, c.quantity, c.standing) == family]
                if claim.family
                else [claim]
            )
            if claim.relation == "in":
                worst, which = max(members, key=_width), "widest"
            else:
                least = max if claim.relation == "<=" else min
                worst, which = least(members, key=lambda c: c.value), "worst"
            note = f", {which} of {len(members)}" if len(members) > 1 else ""
            shown.append((worst, worst.label + note))
        return shown

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def needs_fixed_parameters(claim: Claim) -> bool:
    """Whether a claim from the rows of a fit is void where parameters or columns were chosen by
    looking at them.
    """
    return FIXED_BEFORE in claim.assumptions or (
        claim.with_probability and IID in claim.assumptions
    )


def _lacking(plain: Mapping[str, Any], words: Words) -> Lacking:
    """What is lacking, as it was written; versions up to 3 said "quantity" for what, and before 5
    that was its label.
    """
    given = {"what" if name == "quantity" else name: value for name, value in plain.items()}
    return Lacking(**{"label": words.quantities.get(given["what"], ""), **given})


def _width(claim: Claim) -> float:
    """Of an interval."""
    return claim.value[1] - claim.value[0] if isinstance(claim.value, tuple) else 0.0
