"""Keys that were words before they became identifiers: "uniform stability" is `uniform_stability` now.

Certificates up to version 4 and audits up to version 3 hold the words. They are read through the
tables here, which are closed, and written again with the words that they were read with, so that
their hashes stay what they were.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_FROM_FIT_ROWS = " from the fit rows"
_QUANTITIES = {
    "Huber loss": "huber_loss",
    "Lipschitz constant of the loss": "lipschitz_constant_of_the_loss",
    "Lipschitz constant of the regularized loss": "lipschitz_constant_of_the_regularized_loss",
    "VC dimension": "vc_dimension",
    "accuracy under poison": "accuracy_under_poison",
    "certified radius": "certified_radius",
    "change of a loss": "change_of_a_loss",
    "claims from the training rows": "claims_from_the_training_rows",
    "cost / optimum": "cost_over_optimum",
    "distance to the kernel's interpolant": "distance_to_the_kernels_interpolant",
    "distance to the minimizer": "distance_to_the_minimizer",
    "epsilon (Rényi)": "epsilon_renyi",
    "excess regularized risk": "excess_regularized_risk",
    "excess risk": "excess_risk",
    "generalization gap": "generalization_gap",
    "growth function": "growth_function",
    "inserted plus deleted rows": "inserted_plus_deleted_rows",
    "least perturbed residual norm": "least_perturbed_residual_norm",
    "leave-one-out error": "leave_one_out_error",
    "logarithmic loss of the minimizer": "logarithmic_loss_of_the_minimizer",
    "mean loss": "mean_loss",
    "norm of a padded row": "norm_of_a_padded_row",
    "optimal cost": "optimal_cost",
    "perturbed residual norm": "perturbed_residual_norm",
    "poison fraction": "poison_fraction",
    "rank that covers": "rank_that_covers",
    "remove-one stability": "remove_one_stability",
    "robust accuracy": "robust_accuracy",
    "row-weighted risk": "row_weighted_risk",
    "seeding cost / optimum": "seeding_cost_over_optimum",
    "size of the class": "size_of_the_class",
    "smallest gradient norm": "smallest_gradient_norm",
    "squared loss of the minimizer": "squared_loss_of_the_minimizer",
    "stable weights": "stable_weights",
    "training error": "training_error",
    "uniform stability": "uniform_stability",
}
_FACTS = {"mean loss": "mean_loss"}
# Advice, in reasons why something is not claimed, that names parameters.
_ADVICE = {
    "use intercept='regularized' or 'none', whose": (
        "set regularize_intercept=True or fit_intercept=False, whose"
    ),
    "intercept='regularized' certifies": "regularize_intercept=True certifies",
    "fit with passes=1": "fit with epochs=1",
    "lower tol= or raise passes=": "lower tol= or raise max_iter=",
}
# Of findings, and of what an audit keeps besides.
_NUMBERS = {
    "bins off": "bins_off",
    "epsilon at least": "epsilon_at_least",
    "false alarms": "false_alarms",
    "fold errors": "fold_errors",
    "found at 1% false alarms": "found_at_1_percent_false_alarms",
    "found at 5% false alarms": "found_at_5_percent_false_alarms",
    "highest error": "highest_error",
    "largest change": "largest_change",
    "lowest error": "lowest_error",
    "mean change": "mean_change",
    "mean difference": "mean_difference",
    "mean error": "mean_error",
    "median change": "median_change",
    "pairs by chance": "pairs_by_chance",
    "rows left out": "rows_left_out",
    "same first": "same_first",
    "standard errors": "standard_errors",
}


def quantity_of(words: str) -> str:
    """The key of a quantity that an earlier version named in words; any other name stays.

    Examples
    --------
    >>> quantity_of("seeding cost / optimum"), quantity_of("risk from the fit rows")
    ('seeding_cost_over_optimum', 'risk_from_the_fit_rows')
    """
    if words.endswith(_FROM_FIT_ROWS):
        return from_fit_rows(quantity_of(words.removesuffix(_FROM_FIT_ROWS)))
    return _QUANTITIES.get(words, words)


def from_fit_rows(quantity: str) -> str:
    """The key of a quantity that is claimed from the rows of the fit, beside one from fresh rows."""
    return f"{quantity}_from_the_fit_rows"


def quantity_of_today(name: str) -> str:
    """The key of a quantity that somebody asks for; words of an earlier version give a warning."""
    key = quantity_of(name)
    if key != name:
        message = f"the quantity {name!r} is {key!r} now; the earlier name goes with version 0.4"
        warnings.warn(message, FutureWarning, stacklevel=3)
    return key


@dataclass(frozen=True)
class Words:
    """The words that one file had in the place of keys, by the keys of today.

    Attributes
    ----------
    quantities : of claims, and of what is lacking
    facts : names of a certificate's facts
    numbers : names of findings' numbers, and of the numbers of an audit
    reasons : why something is lacking, where that named a parameter by its earlier name
    """

    quantities: Mapping[str, str] = field(default_factory=dict[str, str])
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of_certificate(cls, plain: Mapping[str, Any]) -> Words:
        """Those of a certificate of version 4 or earlier, as plain data."""
        quantities = [claim["quantity"] for claim in plain["claims"]]
        quantities += [item[name] for item, name in _lacking(plain)]
        quantities += [pair[0] for pair in _estimator_claims(plain["facts"])]
        return cls(
            _found(quantities, quantity_of),
            _found(plain["facts"].get("values", ()), lambda name: _FACTS.get(name, name)),
            reasons=_found([item["reason"] for item, _ in _lacking(plain)], _advice_of_today),
        )

    @classmethod
    def of_audit(cls, plain: Mapping[str, Any]) -> Words:
        """Those of an audit of version 3 or earlier, as plain data; its certificate has its own."""
        quantities = [
            claim["quantity"]
            for section in plain["sections"]
            for claim in section.get("claims", ())
        ]
        numbers = [name for held in _numbers(plain) for name in held]
        return cls(
            _found(quantities, quantity_of),
            numbers=_found(numbers, lambda name: _NUMBERS.get(name, name)),
        )

    def reversed(self) -> Words:
        """Keys by words, for reading."""
        each = (self.quantities, self.facts, self.numbers, self.reasons)
        return Words(*({words: key for key, words in one.items()} for one in each))

    def in_certificate(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """A certificate as plain data, with words in the place of keys."""
        facts = dict(plain["facts"])
        if "values" in facts:
            facts["values"] = _renamed(facts["values"], self.facts)
        if pairs := _estimator_claims(facts):
            facts["values"]["estimator_claims"] = [
                [self.quantities.get(quantity, quantity), theorem] for quantity, theorem in pairs
            ]
        made = {**plain, "facts": facts, "claims": [self._claim(c) for c in plain["claims"]]}
        for list_name, name in _LACKING:
            if list_name in plain:
                made[list_name] = [
                    {
                        **item,
                        name: self.quantities.get(item[name], item[name]),
                        "reason": self.reasons.get(item["reason"], item["reason"]),
                    }
                    for item in plain[list_name]
                ]
        return made

    def in_audit(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """An audit as plain data, with words in the place of keys."""
        made, numbers = dict(plain), plain["numbers"]
        if "selection" in numbers:
            selection = _renamed(numbers["selection"], self.numbers)
            made["numbers"] = {**numbers, "selection": selection}
        made["sections"] = [
            {
                **section,
                **(
                    {"claims": [self._claim(c) for c in section["claims"]]}
                    if "claims" in section
                    else {}
                ),
                "findings": [
                    {**found, "numbers": _renamed(found["numbers"], self.numbers)}
                    for found in section["findings"]
                ],
            }
            for section in plain["sections"]
        ]
        return made

    def _claim(self, claim: Mapping[str, Any]) -> dict[str, Any]:
        sources = {name: self.facts.get(fact, fact) for name, fact in claim["sources"].items()}
        quantity = self.quantities.get(claim["quantity"], claim["quantity"])
        return {**claim, "quantity": quantity, "sources": sources}


# Versions up to 3 said "absent" and "quantity".
_LACKING = (("absent", "quantity"), ("lacking", "what"))


def _lacking(plain: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    return [(item, name) for held, name in _LACKING for item in plain.get(held, ())]


def _advice_of_today(reason: str) -> str:
    for earlier, today in _ADVICE.items():
        reason = reason.replace(earlier, today)
    return reason


def _estimator_claims(facts: Mapping[str, Any]) -> list[Any]:
    """Quantities and theorems that the record of adversarial training names."""
    return list(facts.get("values", {}).get("estimator_claims", ()))


def _numbers(plain: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    held = [found["numbers"] for section in plain["sections"] for found in section["findings"]]
    return [*held, plain["numbers"].get("selection", {})]


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}


def _found(names: Iterable[str], key_of: Callable[[str], str]) -> dict[str, str]:
    """Words by keys; words stay where the file has their key for something else."""
    every = set(names)
    keys = {words: key_of(words) for words in sorted(every)}
    return {key: words for words, key in keys.items() if key != words and key not in every}
