"""What happened in a run of k-means, and which bounds on its cost over the optimum follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn import bounds
from surelearn.record import Record, Writer, run


@dataclass(frozen=True, kw_only=True)
class KMeansRecord(Record):
    """A clustering and the seedings that it was found from.

    Attributes
    ----------
    k : clusters asked for
    init : "k-means++", "greedy", "random" or "given"
    spectrum : whether the spectrum was asked for; None leaves it to its price
    used : clusters that hold a row
    cost : Σ w‖x − c‖², c a row's nearest center
    seeding_costs : of all plain seedings, before Lloyd's iterations
    rule : by which the seedings were drawn: 1, with a walk over the rows for every center; 2, with
        one for up to 16
    singular_values : of the centered rows scaled by √w, each lowered by its rounding; none where
        they were not computed
    """

    key: ClassVar[str] = "kmeans/1"

    k: int
    init: str
    spectrum: bool | None
    used: int
    cost: float
    seeding_costs: tuple[float, ...] = run(
        "seedings are drawn at random: only a random_state that is a number repeats them"
    )
    rule: int = 1
    singular_values: tuple[float, ...]

    def write(self, writer: Writer) -> None:
        """The seeding's expected ratio, lower bounds on the optimum, and the cost over the
        larger; or why not.
        """
        if self.seeding_costs:
            writer.claim(
                bounds.kmeans_plus_plus_ratio, {"k": "k"}, met=bounds.kmeans_plus_plus_ratio.assumes
            )
            read, met = (
                {"costs": "seeding_costs", "k": "k"},
                bounds.kmeans_optimum_lower_bound.assumes,
            )
            writer.claim(
                bounds.kmeans_optimum_lower_bound,
                read,
                label="optimal cost, from seedings",
                met=met,
            )
        else:
            reason = (
                f"init is {self.init!r}: the theorem is about plain D² seeding, init='k-means++'"
            )
            writer.lacks("seeding_cost_over_optimum", reason, bounds.kmeans_plus_plus_ratio.key)
            writer.lacks("optimal_cost", reason, bounds.kmeans_optimum_lower_bound.key)
        if self.singular_values:
            read, met = (
                {"singular_values": "singular_values", "k": "k"},
                bounds.kmeans_spectral_lower_bound.assumes,
            )
            writer.claim(
                bounds.kmeans_spectral_lower_bound,
                read,
                label="optimal cost, from the spectrum",
                met=met,
            )
        else:
            writer.lacks(
                "optimal_cost", self._why_no_spectrum(), bounds.kmeans_spectral_lower_bound.key
            )
        self._write_ratio(writer)

    def _write_ratio(self, writer: Writer) -> None:
        """Bound the cost over the optimum by the larger lower bound; that of the spectrum holds
        always.
        """
        seeds, spectrum, k = self.seeding_costs, self.singular_values, self.k
        from_seeds = bounds.kmeans_optimum_lower_bound(seeds, k, writer.delta) if seeds else 0.0
        from_spectrum = bounds.kmeans_spectral_lower_bound(spectrum, k) if spectrum else 0.0
        read = {"cost": "cost", "k": "k"} | (
            {"singular_values": "singular_values"} if spectrum else {}
        )
        if spectrum and from_spectrum >= from_seeds:
            writer.claim(
                bounds.kmeans_spectral_ratio, read, met=bounds.kmeans_spectral_ratio.assumes
            )
        elif seeds:
            writer.claim(
                bounds.kmeans_ratio,
                read | {"costs": "seeding_costs"},
                met=bounds.kmeans_ratio.assumes,
            )
        else:
            writer.lacks(
                "cost_over_optimum",
                "no lower bound on the optimum applies",
                bounds.kmeans_ratio.key,
            )

    def _why_no_spectrum(self) -> str:
        d = self.d or 0
        if self.k > min(self.n, d):
            return f"{self.k} clusters use up all {min(self.n, d)} dimensions: the PCA tail is 0"
        if self.spectrum is False:
            return "spectrum=False: the spectrum was not computed"
        return (
            f"the spectrum of {self.n:,} rows with {d:,} features is too dear: spectrum=True has it"
        )
