"""What every learner shares: a certificate, made of the facts that ``fit`` recorded.

``fit`` records plain numbers in ``facts_``; ``certificate_`` turns them into claims when it is asked for, so that fitting
pays nothing for a certificate that nobody reads, and a saved learner brings its certificate along.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from surelearn.adapters import describe
from surelearn.certificate import FIXED_BEFOREHAND, Absent, Certificate, Facts, needs_fixed_parameters
from surelearn.claim import Claim, Covers, Theorem
from surelearn.fingerprint import fingerprint_model


class Learner(BaseEstimator):
    """A scikit-learn estimator with ``certificate_``.

    A subclass sets ``facts_`` in ``fit``, a dict of plain numbers, strings, booleans and one-dimensional arrays, and writes
    `_claim`. Where a claim about the rows it was fitted on does not apply, the certificate says why.
    """

    takes_sparse: ClassVar[bool] = False
    facts_: dict[str, Any]

    def __sklearn_tags__(self) -> Any:
        """Whether sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        return tags

    @property
    def certificate_(self) -> Certificate:
        """What is guaranteed about this fit: facts, claims, and the claims that do not apply with their reasons."""
        check_is_fitted(self, "facts_")
        writer = Writer(self, self.facts_)
        self._claim(writer)
        return writer.certificate()

    def _claim(self, writer: Writer) -> None:
        """Make the claims that the facts allow, and say why of those that they do not."""
        raise NotImplementedError


class Writer:
    """Gathers the claims of one fitted learner, each standing alone at its own confidence."""

    def __init__(self, learner: Any, values: Mapping[str, Any]) -> None:
        delta = float(getattr(learner, "delta", 0.05))
        rows, features = values["n"], values.get("d")
        wide = "" if features is None else f" with {features:,} features"
        self.facts = Facts(
            subject=describe(learner),
            setting=f"fitted on {rows:,} rows{wide}",
            hashes={"model": fingerprint_model(learner)},
            options={"delta": delta},
            values=values,
        )
        self.delta = delta
        self.covers = Covers(predictor=self.facts.hashes["model"], rows="the rows it was fitted on")
        self.claims: list[Claim] = []
        self.absents: list[Absent] = []

    def claim(self, theorem: Theorem[..., Any], read: Mapping[str, str], *, loss: str = "", **inputs: Any) -> Claim:
        """Make a claim whose inputs ``read`` names as facts; ``inputs`` are the others, and a claim's label, unit, ….

        Theorems that hold with a probability get the learner's δ unless ``delta`` is given.
        """
        if "delta" in theorem.signature.parameters and "delta" not in inputs and "delta" not in read:
            inputs["delta"] = self.delta
        covers = replace(self.covers, loss=loss) if loss else self.covers
        made = self.facts.claim(theorem, read, covers=covers, **inputs)
        self.claims.append(made)
        return made

    def absent(self, quantity: str, reason: str, theorem: str = "") -> None:
        """Say that a claim is not made, and why."""
        self.absents.append(Absent(quantity=quantity, reason=reason, theorem=theorem))

    def certificate(self) -> Certificate:
        """What was gathered."""
        facts = self.facts
        if any(map(needs_fixed_parameters, self.claims)):
            facts = replace(facts, setting=f"{facts.setting}{FIXED_BEFOREHAND}")
        return Certificate(facts=facts, claims=tuple(self.claims), absent=tuple(self.absents), delta=self.delta)
