"""Facts and certificates: what happened, what follows from it, and what does not."""

from __future__ import annotations

import html
import importlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy.typing as npt

from surelearn import stated
from surelearn.bounds.holdout import CONTENTS_IID, GROUPS_IID, IID
from surelearn.bounds.stability import FIXED_BEFORE
from surelearn.claim import Claim, Theorem, check_key, find_theorem
from surelearn.documents import check_format, checked, is_altered, parse_json, reading, sealed
from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows, is_fingerprint_of
from surelearn.lacking import Lacking, said_once
from surelearn.measurement import Measurement, from_columns, measure
from surelearn.operating import PredictionSets
from surelearn.operating.sets import QUANTITIES as SET_QUANTITIES
from surelearn.plain import (
    FrozenDict,
    Withheld,
    content_hash,
    freeze,
    from_plain,
    percent_sure,
    sample_hash,
    show,
    to_plain,
)
from surelearn.record import Record, Within, Writer, find_record
from surelearn.renamed import Words, from_fit_rows, quantity_of_today
from surelearn.slicing import Cuts
from surelearn.types import Model, RowsLike

FORMAT = "surelearn-certificate"
VERSION = 5  # up to 4 quantities were named in words: see `renamed`
OTHER_ROWS = "the rows are not the ones that the certificate was made on"
OVER_GROUPS = ", mean over groups"
SECOND_MODEL = "second_model"  # facts of one that was given columns that the first was not
FIXED_BEFOREHAND = ", if its parameters were fixed beforehand"
AT_LEAST_ERRORS = "at least the error rate"
_BASELINES = {
    "risk": "baseline_risk",
    from_fit_rows("risk"): "baseline_risk",
    "mean_cost": "baseline_cost",
}
KEPT_APART = "losses per row are kept apart from what is published, beside the ledger"
# Facts and inputs of theorems with one number per row or group.
_SAMPLES = ("losses", "group_losses", "means", "residuals", "scores", "weights")
_TOLERANCE = 1e-9
_ALTERED = "the certificate was changed after it was written: its hash is not that of its content"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What happened, as frozen data: theorems read facts, and a better theorem can read them again
    later.

    Attributes
    ----------
    subject : the model in words, ``LogisticRegression(C=0.1)``
    setting : how the facts came about: "checked on 171 rows it had not seen"
    record : the key of the learner's record that ``values`` are the fields of, "ridge/1"; "" for a
        measurement
    hashes : ``sha256:…`` of the model and of the rows
    options : what was asked for and is needed to measure again
    values : named numbers and samples
    """

    subject: str
    setting: str
    record: str = ""
    hashes: Mapping[str, str] = field(default_factory=FrozenDict)
    options: Mapping[str, Any] = field(default_factory=FrozenDict)
    values: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        for name in ("hashes", "options", "values"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def claim(self, theorem: Theorem[..., Any], read: Mapping[str, str], **inputs: Any) -> Claim:
        """Make a claim whose inputs ``read`` names as facts, so that the way back from claim to
        fact is kept.
        """
        return theorem.certify(
            **{name: self[key] for name, key in read.items()}, sources=read, **inputs
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        plain = to_plain({name: getattr(self, name) for name in self.__dataclass_fields__})
        return (
            plain
            if self.record
            else {name: value for name, value in plain.items() if name != "record"}
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Facts:
        """Read what `to_dict` wrote."""
        return checked(cls(**from_plain(dict(plain))))


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
        if any(_withheld(claim.inputs) for claim in usable):
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
            found = self._verify(measured, model, None, None, columns)
            checked = (*found.checked, "hash of the rows")
            other = () if counted.hash == self.facts.hashes.get("rows") else (OTHER_ROWS,)
            return replace(found, checked=checked, differences=(*found.differences, *other))
        measured = self._measure(model, X, y, columns)
        if measured is not None:
            return self.with_samples(measured)._verify(measured, model, X, y, columns)
        return self._verify(None, model, X, y, columns)

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

    def _verify(
        self,
        measured: Mapping[str, Any] | None,
        model: Model,
        X: RowsLike | None,
        y: npt.ArrayLike | None,
        columns: Mapping[str, Any],
    ) -> Verification:
        unread = [claim for claim in self.claims if _withheld(claim.inputs)]
        checked = [f"{len(self.claims) - len(unread)} claims from facts"]
        differences: list[str] = []
        if self.altered:
            differences.append(_ALTERED)
        for claim in self.claims:
            differences += [f"{claim.label}: {problem}" for problem in _problems(claim, self.facts)]
        differences += [*self._against_options(), *self._against_walk(), *self._against_sets()]
        spent = math.fsum(claim.delta for claim in self.together)
        if spent > self.delta * (1 + _TOLERANCE):
            differences.append(
                f"the claims that hold together spend {spent:.6g}, more than delta ="
                f" {self.delta:.6g}"
            )
        for name, other in (("model", model), ("baseline", columns.get("baseline"))):
            if other is not None:
                checked.append(f"hash of the {name}")
                if UNHASHED in (found := (fingerprint_model(other), self.facts.hashes.get(name))):
                    differences.append(
                        f"the {name} is a plain function: its identity cannot be verified"
                    )
                elif found[0] != found[1] and not is_fingerprint_of(other, found[1]):
                    differences.append(f"the {name} is not the one that was certified")
        if X is not None:
            checked.append("hash of the rows")
            if fingerprint_rows(X, y) != self.facts.hashes.get("rows"):
                differences.append(OTHER_ROWS)
        if measured is not None:
            checked.append("facts from model and rows")
            differences += self._changed_facts(measured, columns)
        unchecked = tuple(
            f"{claim.label}, {find_theorem(claim.theorem).name}: {KEPT_APART}" for claim in unread
        )
        return Verification(
            checked=tuple(checked), differences=tuple(differences), unchecked=unchecked
        )

    def _against_options(self) -> Iterator[str]:
        """In what the claims, or δ, are other than the options say that `certify` was given."""
        options = self.facts.options
        if "candidates" not in options or "delta" not in options:
            return
        # beside a second model, the first has three quarters of δ
        shares = (1.0, 0.75) if SECOND_MODEL in self.facts.hashes else (1.0,)
        asked: object = options["delta"]
        if not isinstance(asked, (int, float)):
            yield f"the delta of its options is not a number: {asked!r:.60}"
        elif not any(math.isclose(asked, part * self.delta) for part in shares):
            yield f"its delta = {self.delta:.6g} is not that of its options, {asked:.6g}"
        stated = ["alpha", "largest_group", "weight_bound"]
        stated += ["loss_bound"] if options.get("task") == "regression" else []
        for claim in self.together:
            if any(key.startswith(f"{SECOND_MODEL}.") for key in claim.sources.values()):
                continue
            if claim.candidates != options["candidates"]:
                yield (
                    f"{claim.label}: it pays for {claim.candidates} candidates, the options say"
                    f" {options['candidates']}"
                )
            for name in stated:
                of = "sets" if name == "alpha" and claim.quantity in SET_QUANTITIES else name
                if name in claim.inputs and not _same(claim.inputs[name], options.get(of)):
                    yield f"{claim.label}: its {name} is not that of the options"

    def _against_walk(self) -> Iterator[str]:
        """In what the facts of a walk along thresholds, and its claim, are other than its counts and
        the options give.
        """
        if "thresholds" not in self.facts.options:
            return
        try:
            walk = Measurement.from_options(self.facts.options).walk
            if walk is None or isinstance(self.facts.values.get("walk.losses"), Withheld):
                return
            again = freeze(walk.end(self.facts.values))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            yield f"its walk along thresholds cannot be read: {error}"
            return
        for name, value in again.items():
            if not _same(value, self.facts.values.get(name)):
                yield f"fact {name!r} is not what the walk along the thresholds gives"
        for claim in self.claims:
            stated = {"level": walk.requirement.level, "loss_bound": walk.loss_bound}
            stated |= {"delta": walk.delta}
            if "step" not in claim.inputs:
                continue
            for name, value in stated.items():
                if name in claim.inputs and not _same(claim.inputs[name], value):
                    yield f"{claim.label}: its {name} is not that of the options"

    def _against_sets(self) -> Iterator[str]:
        """In what claims about prediction sets are others than the options give."""
        options = self.facts.options
        for claim in self.claims:
            if claim.quantity not in SET_QUANTITIES:
                continue
            # recorded scores pay for two readings: their threshold is that of a smaller δ
            found_at = (options.get("sets_delta"), 2 * (options.get("sets_delta") or 0.0))
            if not any(_same(claim.inputs.get("delta"), each) for each in found_at):
                yield f"{claim.label}: its delta is not that of the options, which found its threshold"
            cut = self.facts.values.get(
                claim.sources.get("covered", "").removesuffix(".covered") + ".threshold"
            )
            if not isinstance(cut, float):
                yield f"{claim.label}: there is no threshold of its sets"

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
        return freeze(measure(model, X, y, Measurement.from_options(what), **columns))

    def _changed_facts(self, measured: Mapping[str, Any], columns: Mapping[str, Any]) -> list[str]:
        stored = self.facts.values
        keys = {*measured, *stored}
        given = {
            "baseline": columns.get("baseline", columns.get("baseline_losses")),
            "novel": columns.get("novel"),
        }
        absent = {SECOND_MODEL, *(name for name, value in given.items() if value is None)}
        if not columns.get("further"):
            absent |= {f"further[{i}]" for i in range(len(self.facts.options.get("further", ())))}
        keys = {key for key in keys if key.split(".")[0] not in absent}
        changed = [key for key in sorted(keys) if not _same(measured.get(key), stored.get(key))]
        return [f"fact {key!r} is not what model and rows give" for key in changed]

    def published(self) -> Certificate:
        """The certificate as it may be passed on: in the place of losses per row (or group) stand
        their hashes and means.

        Whoever has them can build a model that looks better on these rows than it is.
        """
        claims = tuple(
            replace(claim, inputs=_without_samples(claim.inputs)) for claim in self.claims
        )
        return replace(
            self,
            facts=replace(self.facts, values=_without_samples(self.facts.values)),
            claims=claims,
        )

    def samples(self) -> dict[str, tuple[float, ...]]:
        """The losses per row (or group) that `published` leaves out, by their hashes."""
        held = [self.facts.values, *(claim.inputs for claim in self.claims)]
        found = [
            value for values in held for name, value in values.items() if _is_sample(name, value)
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
            return again if _same(Withheld.of(again).mean(), value.mean()) else value

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
        return self._text()

    def __str__(self) -> str:
        return self._text()

    def _text(self) -> str:
        lines = [f"Certificate of {self.facts.subject}, {self.facts.setting}"]
        for title, rows in self._blocks():
            lines.append(f"  {title}")
            lines += _aligned(rows)
        if self.lacking:
            lines.append("  Not claimed")
            lines += [f"    {what}: {reason}" for what, reason in said_once(self.lacking)]
        if assumptions := self._assumptions():
            lines.append("  Assumes")
            lines += [f"    {line}" for line in assumptions]
        return "\n".join(lines)

    def _blocks(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        blocks: list[tuple[str, list[tuple[str, ...]]]] = []
        sure = percent_sure(self.delta)
        for standing, title in (
            ("together", f"Guaranteed together, {sure}"),
            ("alone", "Each on its own"),
        ):
            rows = [
                self._cells(claim, label)
                for claim, label in self.rows()
                if claim.standing == standing
            ]
            if rows:
                measured = "measured" if any(row[1] for row in rows) else ""
                head = (
                    "",
                    measured,
                    "bound",
                    "share" if standing == "together" else "surely",
                    "by",
                )
                blocks.append((title, [head, *rows]))
        return blocks

    def _cells(self, claim: Claim, label: str) -> tuple[str, ...]:
        measured = claim.measured
        mark = self.mark(claim)
        by = find_theorem(claim.theorem).name + (f" ({mark})" if mark else "")
        surely = (
            _share(claim.delta / self.delta) if claim.standing == "together" else claim.surely()
        )
        return (
            label,
            "" if measured is None else show(measured, claim.unit),
            claim.bound(),
            surely,
            by,
        )

    def _assumptions(self) -> list[str]:
        return list(dict.fromkeys(line for claim in self.claims for line in claim.assumptions))

    def _repr_html_(self) -> str:
        def row(cells: Iterable[str], tag: str) -> str:
            return (
                "<tr>"
                + "".join(
                    f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells
                )
                + "</tr>"
            )

        parts = [
            f"<p><b>Certificate of {html.escape(self.facts.subject)}</b>,"
            f" {html.escape(self.facts.setting)}</p>"
        ]
        for title, (head, *rows) in self._blocks():
            body = "".join(row(cells, "td") for cells in rows)
            parts.append(
                f"<table><caption>{html.escape(title)}</caption>{row(head, 'th')}{body}</table>"
            )
        notes = [f"Not claimed: {what}: {reason}" for what, reason in said_once(self.lacking)]
        notes += [f"Assumes: {line}" for line in self._assumptions()]
        parts.append("<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in notes) + "</ul>")
        return "<div class='surelearn-certificate'>" + "".join(parts) + "</div>"


def fit_certificate(record: Record, facts: Facts, version: int = VERSION) -> Certificate:
    """The certificate that follows from a record alone; ``facts`` say whose it is, and at which
    δ. One of an earlier ``version`` has the claims that were made then.
    """
    delta = facts.options["delta"]
    writer = Writer(record, delta, facts.hashes["model"], version)
    record.write(writer)
    if any(map(needs_fixed_parameters, writer.claims)):
        facts = replace(facts, setting=f"{facts.setting}{FIXED_BEFOREHAND}")
    return Certificate(
        facts=facts, claims=tuple(writer.claims), lacking=tuple(writer.lacking), delta=writer.delta
    )


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
        again = fit_certificate(record, replace(facts, setting=record.setting), certificate.version)
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
    told = [name for name in names if not _same(own.facts.values.get(name), facts.values.get(name))]
    return [f"{name}: not what the model recorded" for name in told or ["its description"]]


def _differences(again: Certificate, stored: Certificate) -> Iterator[str]:
    """In what a certificate differs from the one that its record gives."""
    if again.facts.setting != stored.facts.setting:
        yield "its setting is not the record's"
    if not _same(again.delta, stored.delta):
        yield "its delta is not the one that its claims were made at"
    for what, one, other in (
        ("claims", again.claims, stored.claims),
        ("reasons", again.lacking, stored.lacking),
    ):
        if len(one) != len(other):
            yield f"it has {len(other)} {what}, its record gives {len(one)}"
    for one, other in zip(again.claims, stored.claims, strict=False):
        for name in Claim.__dataclass_fields__:
            if not _same(getattr(one, name), getattr(other, name)):
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


def needs_fixed_parameters(claim: Claim) -> bool:
    """Whether a claim from the rows of a fit is void where parameters or columns were chosen by
    looking at them.
    """
    return FIXED_BEFORE in claim.assumptions or (
        claim.with_probability and IID in claim.assumptions
    )


def _problems(claim: Claim, facts: Facts) -> list[str]:
    """Everything in which a claim differs from its theorem and from the facts."""
    theorem = find_theorem(claim.theorem)
    problems: list[str] = []
    for name, key in claim.sources.items():
        if key not in facts or not _same(facts[key], claim.inputs.get(name)):
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
    if _withheld(claim.inputs):
        return problems
    try:
        value = claim.recompute()
    except (ValueError, TypeError) as error:
        return [*problems, f"{theorem.name} refuses its inputs: {error}"]
    if not _same(value, claim.value):
        problems.append(f"{theorem.name} gives {value}, not {claim.value}")
    return problems


def _lacking(plain: Mapping[str, Any], words: Words) -> Lacking:
    """What is lacking, as it was written; versions up to 3 said "quantity" for what, and before 5
    that was its label.
    """
    given = {"what" if name == "quantity" else name: value for name, value in plain.items()}
    return Lacking(**{"label": words.quantities.get(given["what"], ""), **given})


def _withheld(values: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Withheld) for value in values.values())


def _is_sample(name: str, value: object) -> bool:
    values = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (None,)
    numbers = all(isinstance(one, int | float) for one in values)
    return numbers and name.rpartition(".")[2].removeprefix("baseline_") in _SAMPLES


def _without_samples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: Withheld.of(value) if _is_sample(name, value) else value
        for name, value in values.items()
    }


def _same(one: object, other: object) -> bool:
    """Equality, with a tolerance for the last digits of floats."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        these, those = cast("tuple[Any, ...]", one), cast("tuple[Any, ...]", other)
        return len(these) == len(those) and all(map(_same, these, those))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        left, right = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return left.keys() == right.keys() and all(
            _same(value, right[name]) for name, value in left.items()
        )
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=1e-12)
    return one == other


def _width(claim: Claim) -> float:
    """Of an interval."""
    return claim.value[1] - claim.value[0] if isinstance(claim.value, tuple) else 0.0


def _share(part: float) -> str:
    """A claim's part of the certificate's δ for people: ``δ``, ``δ/12``."""
    return "0" if part == 0 else "δ" if round(1 / part) == 1 else f"δ/{1 / part:.4g}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns padded to their widest cell: labels and theorems to the left, numbers to the
    right.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    pad = (str.ljust, str.rjust, str.rjust, str.rjust, str.ljust)
    return [
        "    " + "  ".join(pad[i](cell, widths[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]
