"""`Watch`: whether live rows still bear out everything that was certified, looked at as often
as one likes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelearn import files, stated
from surelearn.certificate import Certificate
from surelearn.claim import Claim, Finding
from surelearn.documents import check_format, read_json
from surelearn.measurement import Mask, Measurement
from surelearn.monitoring.evidence import (
    MOST_POINTS,
    check_certificate,
    check_entries,
    name_of,
    real,
    require,
    whole,
)
from surelearn.monitoring.label_shift import LabelShift
from surelearn.monitoring.labels import group_hash, missing, one_dimensional
from surelearn.monitoring.losses import (
    EVERY_ROW,
    SETS,
    SLICES,
    divide,
    find_claims,
    read_rows,
    unit_losses,
)
from surelearn.monitoring.watched import COUNTS, WatchedClaim, some
from surelearn.plain import percent_sure, show
from surelearn.slicing import Cuts
from surelearn.types import AnyArray, Array, RowsLike

FORMAT = "surelearn-watch"
Intervals: TypeAlias = tuple[Array, Array]
VERSION = 2  # 1 watched a single claim
_LEAST_DELTA = 1e-300  # 1/δ is still a float
FEWER_POINTS = 100  # of the way of the evidence against a claim that is not the first


@dataclass(frozen=True)
class Fed:
    """What became of a file: so many rows were new, so many had been fed ``before``, in the
    file called ``name``.
    """

    new: int
    before: int = 0
    name: str = ""

    def __str__(self) -> str:
        fed = f"{self.new:,} new row{'s' * (self.new != 1)}"
        if not self.before:
            return fed
        first = "row was" if self.before == 1 else f"{self.before:,} rows were"
        return f"{fed}; the first {first} fed before" + (f" as {self.name}" if self.name else "")


@dataclass(frozen=True)
class _File:
    """A file that was fed: its name, how many rows it had, and the SHA-256 of their hashes."""

    name: str
    rows: int
    sha256: str


class Watch:
    """Anytime-valid tests of "what was certified is still true", by betting
    (`surelearn.monitoring.betting`).

    Every certified claim that live rows can contradict is watched at once: errors, sensitivity,
    specificity, precision, class errors, slices, mean cost, prediction intervals, prediction sets,
    mean loss. One δ
    is divided among them before any live row is seen: half for the headline, the rest in equal
    parts for the other quantities, and a quantity's part equally for its classes or slices. If
    nothing has changed, an alarm is ever raised with probability at most δ plus the δ of the
    watched claims (which is part of the certificate's), however often and however long one looks;
    live rows must be a random labeled sample of what the model is used on, and none of the rows it
    was certified on. A change for the worse that stays within the certified bounds cannot be seen.

    Class frequencies are compared as well, see `label_shift`: a finding, with a false-alarm rate of
    its own.

    Parameters
    ----------
    certificate : what was certified
    claim : watch one quantity only, with all of δ: "risk", "sensitivity", "specificity",
        "precision", "class_error", "slice_risk", "mean_cost", "error_quantile", "score_quantile",
        "mean_loss" or "slice_loss"; by default all that were certified
    delta : probability of ever raising an alarm, if everything certified is true

    Attributes
    ----------
    certificate, delta : as given
    quantity : ``claim`` as given
    watched : a `WatchedClaim` for each claim, with its part of δ and its evidence; the headline is
        the first
    unlabelled : rows left out because they have no label

    Examples
    --------
    >>> from surelearn import certify
    >>> X = np.where(np.arange(200) % 25 == 0, -1.0, 1.0)[:, None]  # an error in every 25th row
    >>> model = lambda X: np.where(X[:, 0] > 0, "healthy", "ill")
    >>> certificate = certify(model, X, ["healthy"] * 200, task="classification", classes=["healthy", "ill"])
    >>> watch = Watch(certificate, "risk").update(["healthy", "ill", "healthy"], ["healthy", "healthy", "healthy"])
    >>> watch.alarm
    False
    >>> print(watch.update(["ill", "healthy"] * 30, ["healthy"] * 60))
    Watching errors, certified ≤ 7.8% (97.5% sure): 31 of 63, 49.2%.
    Evidence against it: 10^15 now, 10^15 at most; the alarm is at 20.
    Alarm after 10 rows: the live rows contradict errors ≤ 7.8%.
    Unchanged models ever get here with probability ≤ 7.5%.
    """

    def __init__(
        self, certificate: Certificate, claim: str | None = None, delta: float = 0.05
    ) -> None:
        if stated.fraction("delta", delta) < _LEAST_DELTA:
            raise ValueError(f"delta must be at least {_LEAST_DELTA:g}, not {delta!r:.60}")
        self.certificate, self.quantity, self.delta = certificate, claim, float(delta)
        self._what = Measurement.from_options(certificate.facts.options)
        self._recorded = "answers" in certificate.facts.options
        self._cuts = Cuts.from_options(certificate.facts.options.get("slices", ()))
        self._grouped = "groups" in certificate.facts
        claims = find_claims(certificate, claim)
        self.watched = self._begin(claims, divide(claims, self.delta))
        self.labels = LabelShift.of(certificate)
        self.unlabelled = 0
        self._files: list[_File] = []

    def _begin(self, claims: tuple[Claim, ...], deltas: list[float]) -> tuple[WatchedClaim, ...]:
        points = [MOST_POINTS] + [FEWER_POINTS] * (len(claims) - 1)
        return tuple(
            WatchedClaim(claim, delta, grouped=self._grouped, points=kept)
            for claim, delta, kept in zip(claims, deltas, points, strict=True)
        )

    @property
    def alarm(self) -> bool:
        """Whether the evidence against any claim ever reached its alarm; once raised it stays."""
        return bool(self.contradicted)

    @property
    def contradicted(self) -> tuple[WatchedClaim, ...]:
        """The claims that the live rows contradict."""
        return tuple(each for each in self.watched if each.alarm_at is not None)

    @property
    def label_shift(self) -> Finding | None:
        """SL503: class frequencies differ from the certify rows'; 1% false alarms, however
        often one looks.
        """
        return None if self.labels is None else self.labels.finding()

    @property
    def headline(self) -> WatchedClaim:
        """The first claim that is watched."""
        return self.watched[0]

    @property
    def rows(self) -> int:
        """Labeled rows that the headline is about: all of them, unless a rate within a class
        was asked for.
        """
        return self.headline.rows

    def update(
        self,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
        X: RowsLike | None = None,
        sets: npt.ArrayLike | None = None,
        intervals: Intervals | None = None,
    ) -> Watch:
        """Take in live rows, any number; nothing changes if they are refused.

        Parameters
        ----------
        y_true : labels; rows without one (None, NaN) are left out and counted
        y_pred : the model's predictions
        groups : one label per row, for a certificate made with groups: a group's rows count once,
            as their mean, and a group that counted in an earlier update is left out
        X : the rows themselves, as the model reads them: they say which slices a row is in. Without
            them the claims about slices get no evidence
        sets : the prediction sets of a certificate that has some: (n, classes) which labels are in
            them, as ``certificate.sets.members(model, X)`` says, or (n,) texts, as `surelearn predict`
            writes them. Without them the claims about sets get no evidence
        intervals : (low, high), one of each per row, as `surelearn.prediction.intervals` gives them,
            where they have a width of each row's own. Without them the claim about them gets no
            evidence

        Raises
        ------
        ValueError
            in one sentence, for rows that do not fit together or that the certificate is not about
        """
        y_true, y_pred = one_dimensional(y_true, "y_true"), one_dimensional(y_pred, "y_pred")
        if y_true.size != y_pred.size:
            raise ValueError(
                f"y_true has {y_true.size} rows and y_pred has {y_pred.size}: they must describe"
                " the same rows"
            )
        inside, ends = self._sets(sets, y_true.size), self._ends(intervals, y_true.size)
        self._update(y_true, y_pred, groups, self._slices(X, y_true.size), inside, ends)
        return self

    def _update(
        self,
        y_true: AnyArray,
        y_pred: AnyArray,
        groups: npt.ArrayLike | None,
        slices: Mapping[str, Mask],
        sets: Mask | None,
        intervals: Intervals | None,
    ) -> None:
        labels = self._labels(groups, y_true.size)
        if missing(y_pred).any():
            raise ValueError(
                f"y_pred must not be missing: {int(missing(y_pred).sum())} of {y_pred.size}"
                " predictions are"
            )
        labelled = ~missing(y_true)
        inside = {name: mask[labelled] for name, mask in slices.items()}
        ends = None if intervals is None else (intervals[0][labelled], intervals[1][labelled])
        rows = read_rows(
            self._what,
            y_true[labelled],
            y_pred[labelled],
            inside,
            recorded=self._recorded,
            sets=None if sets is None else sets[labelled],
            intervals=ends,
        )
        losses = [unit_losses(each.claim, self._what, rows) for each in self.watched]
        hashes = (
            None if labels is None else [group_hash(label) for label in labels[labelled].tolist()]
        )
        for each, lost in zip(self.watched, losses, strict=True):
            each.take(lost, hashes)
        if self.labels is not None:
            self.labels.take(rows.truth)
        self.unlabelled += int((~labelled).sum())

    def _sets(self, sets: npt.ArrayLike | None, n: int) -> Mask | None:
        """(n, classes) which labels are in each prediction set; None where none are watched."""
        known = self.certificate.sets
        if sets is None or not any(each.claim.quantity in SETS for each in self.watched):
            return None
        given = np.asarray(sets)
        if known is not None and given.ndim == 1 and given.dtype.kind in "OU":
            given = known.read(given.tolist())
        if given.dtype != bool or given.shape != (n, len(self._what.classes)):
            raise ValueError(
                "sets must be booleans, one row per label and one column per class of the certificate,"
                f" or one text per row, not {given.dtype} of shape {given.shape}"
            )
        return given

    def _ends(self, intervals: Intervals | None, n: int) -> Intervals | None:
        """The ends of the rows' own intervals, checked; None where no claim is about them."""
        if intervals is None or all(
            each.claim.quantity != "score_quantile" for each in self.watched
        ):
            return None
        low, high = (np.asarray(end, dtype=float) for end in intervals)
        if low.shape != (n,) or high.shape != (n,) or not (low <= high).all():
            raise ValueError(
                f"intervals must be low ≤ high, one of each for each of the {n} labels"
            )
        return low, high

    def _slices(self, X: RowsLike | None, n: int) -> Mapping[str, Mask]:
        """Which rows are in which slice; nothing without rows, or where no slice is watched."""
        if X is None or not any(each.claim.quantity in SLICES for each in self.watched):
            return {}
        try:
            found = self._cuts(X)
        except (KeyError, IndexError, TypeError, ValueError):
            columns = ", ".join(repr(cut.column) for cut in self._cuts.cuts)
            raise ValueError(
                "X must have the columns that slices are made of, as the model reads them:"
                f" {columns}"
            ) from None
        if any(mask.shape != (n,) for mask in found.values()):
            raise ValueError(f"X must have one row for each of the {n} labels")
        return found

    def feed(
        self,
        row_hashes: npt.ArrayLike,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
        name: str = "",
        X: RowsLike | None = None,
        sets: npt.ArrayLike | None = None,
        intervals: Intervals | None = None,
    ) -> Fed:
        """`update` with those rows of a file that were not fed before: a file may grow at its end
        and be fed again.

        Rows were fed before if a file that was fed is the beginning of this one, row for row; the
        longest such file counts. A file whose earlier rows were changed, moved or only later
        labeled is taken for new rows.

        Parameters
        ----------
        row_hashes : a 64-bit hash of each row's content with its target, see
            `surelearn.data.table.hash_rows`
        y_true, y_pred, groups, X, sets, intervals : of all rows, see `update`
        name : what to call the file
        """
        hashes = np.asarray(row_hashes)
        truth, answer = one_dimensional(y_true, "y_true"), one_dimensional(y_pred, "y_pred")
        labels = None if groups is None else one_dimensional(groups, "groups")
        shapes = {column.shape for column in (truth, answer, labels) if column is not None}
        if hashes.dtype != np.uint64 or shapes != {hashes.shape}:
            raise ValueError(
                "row_hashes must hold one unsigned 64-bit number for each row of the other columns"
            )
        longest, digest = self._longest_beginning(hashes)
        new = slice(longest.rows, None)
        slices = {part: mask[new] for part, mask in self._slices(X, hashes.size).items()}
        inside, ends = self._sets(sets, hashes.size), self._ends(intervals, hashes.size)
        inside = None if inside is None else inside[new]
        ends = None if ends is None else (ends[0][new], ends[1][new])
        groups = None if labels is None else labels[new]
        self._update(truth[new], answer[new], groups, slices, inside, ends)
        if longest.rows < hashes.size:
            self._files.append(_File(str(name), int(hashes.size), digest))
        return Fed(new=int(hashes.size) - longest.rows, before=longest.rows, name=longest.name)

    def knows(self, row_hashes: npt.ArrayLike) -> bool:
        """Whether a file that was fed is the beginning of one with these rows; see `feed`."""
        return self._longest_beginning(np.asarray(row_hashes))[0].rows > 0

    def _longest_beginning(self, hashes: npt.NDArray[np.uint64]) -> tuple[_File, str]:
        """The longest file among those fed that these rows begin with (an empty one, if none),
        and the rows' own SHA-256.
        """
        digest, read, longest = hashlib.sha256(), 0, _File("", 0, "")
        for file in sorted(self._files, key=lambda file: file.rows):
            if file.rows <= hashes.size:
                digest.update(hashes[read : file.rows].astype("<u8").tobytes())
                read, longest = file.rows, file if digest.hexdigest() == file.sha256 else longest
        digest.update(hashes[read:].astype("<u8").tobytes())
        return longest, digest.hexdigest()

    def _labels(self, groups: npt.ArrayLike | None, n: int) -> Any:
        """The group of each row, or None for a certificate about rows."""
        if groups is None:
            if self._grouped:
                raise ValueError(
                    "the certificate is about the mean of a new group: pass groups=, one label"
                    " per row"
                )
            return None
        if not self._grouped:
            raise ValueError(
                "the certificate was made without groups: it is about rows, so leave groups= out"
            )
        labels = one_dimensional(groups, "groups")
        if labels.size != n:
            raise ValueError(
                f"groups must name one group a row: it has {labels.size} values, y_true has {n}"
            )
        if missing(labels).any():
            raise ValueError(
                "groups must not be missing: give rows of an unknown group one of their own"
            )
        return labels

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = self._one() if len(self.watched) == 1 else self._several()
        lines += [f"{notes}."] if (notes := "; ".join(self._notes())) else []
        for each in self.contradicted:
            such = "" if each.claim.quantity in EVERY_ROW else "such "
            after = f"Alarm after {some(each.alarm_at or 0, such + each.unit)}"
            lines.append(
                f"{after}: the live rows contradict {each.claim.label} {each.claim.bound()}."
            )
        if self.alarm:
            chance = min(1.0, math.fsum([self.delta, *(each.claim.delta for each in self.watched)]))
            rare = show(float(f"{chance:.12g}"), "rate", "<=")
            lines.append(f"Unchanged models ever get here with probability ≤ {rare}.")
        if not self.alarm and self.headline.units:
            lines.append(
                "No alarm. A change for the worse that stays within the certified bound cannot be"
                " seen this way."
            )
        return "\n".join(lines)

    def _one(self) -> list[str]:
        each = self.headline
        seen = each.live() if each.units else "no labeled rows yet"
        return [
            (
                f"Watching {each.claim.label}, certified {each.claim.bound()}"
                f" ({percent_sure(each.claim.delta)} sure): {seen}."
            ),
            (
                f"Evidence against it: {each.now} now, {each.most} at most; the alarm is at"
                f" {each.limit}."
            ),
        ]

    def _several(self) -> list[str]:
        """A line for every claim; of classes and slices the one with the most evidence, and all
        that are contradicted.
        """
        shown = [("", "certified", "live", "evidence", "at most", "alarm at")]
        for quantity in dict.fromkeys(each.claim.quantity for each in self.watched):
            members = [each for each in self.watched if each.claim.quantity == quantity]
            worst = max(members, key=lambda each: each.closeness)
            for each in [each for each in members if each.alarm_at is not None] or [worst]:
                note = (
                    f", most evidence of {len(members)}"
                    if each is worst and len(members) > 1
                    else ""
                )
                shown.append(
                    (
                        each.claim.label + note,
                        each.claim.bound(),
                        each.live(),
                        each.now,
                        each.most,
                        each.limit,
                    )
                )
        widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
        table = [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in shown
        ]
        rows = some(self.rows, "labeled row") + (
            f" of {some(self.headline.units, 'group')}" if self._grouped else ""
        )
        seen = rows if self.headline.units else "no labeled rows yet"
        lines = [
            f"Watching {len(self.watched)} certified claims, {seen}; evidence against each:",
            *map(str.rstrip, table),
        ]
        unwatched = {
            claim.quantity: None for claim in self.certificate.together if not claim.vacuous
        }
        for each in self.watched:
            unwatched.pop(each.claim.quantity, None)
        return lines + (
            [f"Certified and not watched: {', '.join(unwatched)}."] if unwatched else []
        )

    def _notes(self) -> list[str]:
        """What was left out, or is strange."""
        unknown, beyond, repeated = (
            max(getattr(each, name) for each in self.watched)
            for name in ("unknown", "beyond", "repeated")
        )
        notes = {
            f"{some(self.unlabelled, 'row')} without a label left out": self.unlabelled,
            f"{some(repeated, 'group')} seen before left out": repeated,
            f"{some(unknown, 'row')} with a label the model never saw, counted as wrong": unknown,
            f"{some(beyond, 'row')} with a loss above the stated bound, counted as the bound": (
                beyond
            ),
        }
        return [note for note, count in notes.items() if count]

    def plot(self, path: str | Path) -> None:
        """Draw the evidence over time against the headline and every contradicted claim, as part of
        what raises the alarm.

        PNG, SVG or PDF by the file's name.
        """
        from surelearn.monitoring.plot import draw

        shown = [self.headline, *(each for each in self.contradicted if each is not self.headline)]
        paths = {
            f"{each.claim.label} {each.claim.bound()}": (each.history, each.delta) for each in shown
        }
        draw(
            Path(path),
            paths,
            title="Evidence against what was certified",
            counted=f"labeled {self.headline.unit}s",
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "certificate": name_of(self.certificate),
            "claim": self.quantity,
            "delta": self.delta,
            "unlabelled": self.unlabelled,
            "watched": [each.to_dict() for each in self.watched],
            "labels": None if self.labels is None else self.labels.to_dict(),
            "files": [asdict(file) for file in self._files],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], certificate: Certificate) -> Watch:
        """Read what `to_dict` wrote for this certificate; anything else is refused with a
        `ValueError` that says why.

        A state of version 1, which watched one claim, goes on with that claim and its δ.
        """
        version = check_format(plain, "the state of a watch", FORMAT, VERSION)
        check_certificate(plain.get("certificate"), certificate)
        try:
            watch = cls(certificate, plain["claim"], plain["delta"])
            watch._restore(plain if version > 1 else _from_version_1(plain, watch.headline))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"the watch's state is damaged: {reason:.240}") from None
        return watch

    def _restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; a `ValueError` says which part of it cannot be right."""
        check_entries(plain, self.to_dict())
        self.unlabelled = whole("unlabelled", plain["unlabelled"])
        claims = {each.claim.label: each.claim for each in self.watched}
        kept = [(claims[each["claim"]], real("delta", each["delta"])) for each in plain["watched"]]
        spent = math.fsum(delta for _, delta in kept)
        require("watched", bool(kept) and len({id(claim) for claim, _ in kept}) == len(kept))
        require("delta", all(delta > 0 for _, delta in kept) and spent <= self.delta * (1 + 1e-9))
        self.watched = self._begin(tuple(claim for claim, _ in kept), [delta for _, delta in kept])
        for each, state in zip(self.watched, plain["watched"], strict=True):
            each.restore(state)
        if self.labels is not None and plain["labels"] is not None:
            self.labels.restore(plain["labels"])
        for file in plain["files"]:
            check_entries(file, _File("", 0, "").__dict__)
            require(
                "files",
                whole("files", file["rows"]) > 0
                and isinstance(file["name"], str)
                and isinstance(file["sha256"], str),
            )
        self._files = [_File(**file) for file in plain["files"]]

    def save(self, path: str | Path) -> None:
        """Write the state as JSON; the file is replaced as a whole or not at all."""
        files.write(
            Path(path),
            json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        )

    @classmethod
    def load(cls, path: str | Path, certificate: Certificate) -> Watch:
        """Read what `save` wrote for this certificate."""
        try:
            plain = read_json(path, "it")
        except ValueError as error:
            raise ValueError(f"{path} is not the state of a watch: {error}") from None
        try:
            return cls.from_dict(plain, certificate)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _from_version_1(plain: Mapping[str, Any], claim: WatchedClaim) -> dict[str, Any]:
    """A state that watched one claim with all of δ, as one of version 2 that does."""
    own = {name: plain[name] for name in (*COUNTS, "evidence", "groups")}
    kept = {
        name: plain[name]
        for name in ("format", "certificate", "claim", "delta", "unlabelled", "files")
    }
    check_entries(plain, {**own, **kept, "version": 1})
    watched = {"claim": claim.claim.label, "delta": plain["delta"], **own}
    return {**kept, "version": VERSION, "watched": [watched], "labels": None}
