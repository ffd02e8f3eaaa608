"""`Watch`: whether the live risk is still at most what was certified, looked at as often as one likes."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn import files
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.documents import check_format, read_json
from surelearn.measurement import Measurement
from surelearn.monitoring.evidence import Evidence, capital, check_entries, require, whole, words
from surelearn.monitoring.labels import group_hash, missing, one_dimensional
from surelearn.monitoring.losses import find_claim, live_value, scale, unit_bound, unit_losses
from surelearn.plain import percent_sure, show

FORMAT = "surelearn-watch"
VERSION = 1
_COUNTS = ("rows", "unlabelled", "unknown", "beyond", "repeated")


@dataclass(frozen=True)
class Fed:
    """What became of a file: so many rows were new, so many had been fed ``before``, in the file called ``name``."""

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
    """An anytime-valid test of "the live risk is at most what was certified", by betting (`surelearn.monitoring.betting`).

    If nothing has changed, an alarm is ever raised with probability at most δ plus the claim's own δ (which is part of the
    certificate's), however often and however long one looks; live rows must be a random labelled sample of what the
    model is used on, and none of the rows it was certified on. A risk that grew but is still below the certified bound
    cannot be seen. Several claims are watched by several watches, each with a δ of its own.

    Parameters
    ----------
    certificate : what was certified
    claim : the quantity to watch: "risk", "sensitivity", "specificity", "precision", "mean_cost", "error_quantile" or
        "mean_loss"; by default the certificate's headline
    delta : probability of ever raising an alarm, if the certified bound holds

    Attributes
    ----------
    certificate, claim, delta : as given; ``claim`` is the `Claim`
    rows : labelled rows that the claim is about
    unlabelled : rows left out because they have no label
    unknown : rows with a label that the model never saw; they count as errors
    beyond : rows with a loss above the stated ``loss_bound``, counted as ``loss_bound``
    repeated : groups left out because an earlier update had them

    Examples
    --------
    >>> from surelearn import certify
    >>> X = np.where(np.arange(200) % 25 == 0, -1.0, 1.0)[:, None]  # an error in every 25th row
    >>> model = lambda X: np.where(X[:, 0] > 0, "healthy", "ill")
    >>> certificate = certify(model, X, ["healthy"] * 200, task="classification", classes=["healthy", "ill"])
    >>> watch = Watch(certificate)
    >>> watch.update(["healthy", "healthy", "ill"], ["healthy", "ill", "ill"]).alarm
    False
    >>> print(watch.update(["ill", "healthy"] * 30, ["healthy"] * 60))
    Watching errors, certified ≤ 7.8% (97.5% sure): 31 in 63 labelled rows, 49.2%.
    Evidence against it: 10^15 now, 10^15 at most; the alarm is at 20.
    Alarm after 10 rows: the live rows contradict the certificate. Unchanged models ever get here with probability ≤ 7.5%.
    """

    def __init__(self, certificate: Certificate, claim: str | None = None, delta: float = 0.05) -> None:
        if not isinstance(delta, (int, float)) or not 1e-300 <= delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, not {delta!r:.60}")
        self.certificate = certificate
        self.claim: Claim = find_claim(certificate, claim)
        self.delta = float(delta)
        self.rows = self.unlabelled = self.unknown = self.beyond = self.repeated = 0
        self._what = Measurement.from_options(certificate.facts.options)
        self._grouped = "groups" in certificate.facts
        self._evidence = Evidence(unit_bound(self.claim), self.delta)
        self._groups: set[bytes] = set()
        self._files: list[_File] = []

    @property
    def alarm(self) -> bool:
        """Whether the evidence ever reached 1/δ; once raised it stays."""
        return self.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        """After how many ``units`` the alarm was raised."""
        return self._evidence.alarm_at

    @property
    def evidence(self) -> float:
        """The gamblers' capital: large if the live rows contradict the certified bound."""
        return capital(self._evidence.log_capital)

    @property
    def highest(self) -> float:
        """The largest evidence after any row."""
        return capital(self._evidence.highest)

    @property
    def history(self) -> tuple[tuple[int, float], ...]:
        """(units, ln evidence) from the start to now, at most about a thousand, the highest among them."""
        return self._evidence.history

    @property
    def units(self) -> int:
        """How many losses there were: the rows, or the groups of a certificate made with groups."""
        return self._evidence.units

    @property
    def errors(self) -> float:
        """The sum of the losses (of the groups' mean losses); for a rate of successes, of the failures."""
        return self._evidence.lost * scale(self.claim)

    @property
    def rate(self) -> float:
        """The mean loss, NaN before the first."""
        return self.errors / self.units if self.units else math.nan

    @property
    def bound(self) -> float:
        """What the mean loss was certified to be at most, in the long run."""
        return self._evidence.game.bound * scale(self.claim)

    def update(self, y_true: Any, y_pred: Any, groups: Any = None) -> Watch:
        """Take in live rows, any number; nothing changes if they are refused.

        Parameters
        ----------
        y_true : labels; rows without one (None, NaN) are left out and counted
        y_pred : the model's predictions
        groups : one label a row, for a certificate made with groups: a group's rows count once, as their mean, and a group
            that counted in an earlier update is left out

        Raises
        ------
        ValueError
            in one sentence, for rows that do not fit together or that the certificate is not about
        """
        y_true, y_pred = one_dimensional(y_true, "y_true"), one_dimensional(y_pred, "y_pred")
        if y_true.size != y_pred.size:
            raise ValueError(f"y_true has {y_true.size} rows and y_pred has {y_pred.size}: they must describe the same rows")
        labels = self._labels(groups, y_true.size)
        if missing(y_pred).any():
            raise ValueError(f"y_pred must not be missing: {int(missing(y_pred).sum())} of {y_pred.size} predictions are")
        labelled = ~missing(y_true)
        losses = unit_losses(self.claim, self._what, y_true[labelled], y_pred[labelled])
        used = ~np.isnan(losses.values)
        if labels is None:
            self._evidence.take(losses.values[used])
        else:
            used = self._take_groups(losses.values, used, labels[labelled])
        self.rows += int(used.sum())
        self.unknown += int((losses.unknown & used).sum())
        self.beyond += int((losses.beyond & used).sum())
        self.unlabelled += int((~labelled).sum())
        return self

    def feed(self, row_hashes: Any, y_true: Any, y_pred: Any, groups: Any = None, name: str = "") -> Fed:
        """`update` with those rows of a file that were not fed before: a file may grow at its end and be fed again.

        Rows were fed before if a file that was fed is the beginning of this one, row for row; the longest such file
        counts. A file whose earlier rows were changed, moved or only later labelled is taken for new rows.

        Parameters
        ----------
        row_hashes : a 64-bit hash of each row's content with its target, see `surelearn.data.table.hash_rows`
        y_true, y_pred, groups : of all rows, see `update`
        name : what to call the file
        """
        hashes = np.asarray(row_hashes)
        columns = [one_dimensional(y_true, "y_true"), one_dimensional(y_pred, "y_pred")]
        columns += [] if groups is None else [one_dimensional(groups, "groups")]
        if hashes.dtype != np.uint64 or any(column.shape != hashes.shape for column in columns):
            raise ValueError("row_hashes must hold one unsigned 64-bit number for each row of the other columns")
        longest, digest = self._longest_beginning(hashes)
        self.update(*(column[longest.rows :] for column in columns))
        if longest.rows < hashes.size:
            self._files.append(_File(str(name), int(hashes.size), digest))
        return Fed(new=int(hashes.size) - longest.rows, before=longest.rows, name=longest.name)

    def _longest_beginning(self, hashes: npt.NDArray[np.uint64]) -> tuple[_File, str]:
        """The longest file among those fed that these rows begin with (an empty one, if none), and the rows' own SHA-256."""
        digest, read, longest = hashlib.sha256(), 0, _File("", 0, "")
        for file in sorted(self._files, key=lambda file: file.rows):
            if file.rows <= hashes.size:
                digest.update(hashes[read : file.rows].astype("<u8").tobytes())
                read, longest = file.rows, file if digest.hexdigest() == file.sha256 else longest
        digest.update(hashes[read:].astype("<u8").tobytes())
        return longest, digest.hexdigest()

    def _labels(self, groups: Any, n: int) -> Any:
        """The group of each row, or None for a certificate about rows."""
        if groups is None:
            if self._grouped:
                raise ValueError("the certificate is about the mean of a new group: pass groups=, one label a row")
            return None
        if not self._grouped:
            raise ValueError("the certificate was made without groups: it is about rows, so leave groups= out")
        labels = one_dimensional(groups, "groups")
        if labels.size != n:
            raise ValueError(f"groups must name one group a row: it has {labels.size} values, y_true has {n}")
        if missing(labels).any():
            raise ValueError("groups must not be missing: give rows of an unknown group one of their own")
        return labels

    def _take_groups(self, losses: Any, concerned: Any, labels: Any) -> npt.NDArray[np.bool_]:
        """Take in the mean of each new group, by first appearance; returns which rows that were."""
        hashes = [group_hash(label) for label in labels.tolist()]
        present = dict.fromkeys(name for name, about in zip(hashes, concerned, strict=True) if about)
        unit = {name: i for i, name in enumerate(name for name in present if name not in self._groups)}
        index = np.array([unit.get(name, -1) for name in hashes], dtype=int)
        used = concerned & (index >= 0)
        sums, counts = np.bincount(index[used], losses[used]), np.bincount(index[used])
        self._evidence.take(np.clip(sums / counts, 0.0, 1.0))
        self.repeated += len(present) - len(unit)
        self._groups |= set(unit)
        return used

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        seen = self._seen() if self.units else "no labelled rows yet"
        highest, now, at = (
            words(self._evidence.highest),
            words(self._evidence.log_capital),
            words(-math.log(self.delta), "<="),
        )
        lines = [
            f"Watching {self.claim.label}, certified {self.claim.bound()} ({percent_sure(self.claim.delta)} sure): {seen}.",
            f"Evidence against it: {now} now, {highest} at most; the alarm is at {at}.",
        ]
        lines += [f"{notes}."] if (notes := "; ".join(self._notes())) else []
        if self.alarm_at is not None:
            chance = show(float(f"{min(1.0, self.delta + self.claim.delta):.12g}"), "rate", "<=")
            after = f"after {_some(self.alarm_at, self._unit)}"
            rare = f"Unchanged models ever get here with probability ≤ {chance}"
            lines.append(f"Alarm {after}: the live rows contradict the certificate. {rare}.")
        elif self.units:
            lines.append("No alarm. A change for the worse that stays within the certified bound cannot be seen this way.")
        return "\n".join(lines)

    @property
    def _unit(self) -> str:
        return "group" if self._grouped else "row"

    def _seen(self) -> str:
        """What the live rows were, in the claim's own words."""
        rows = _some(self.rows, "labelled row") + (f" of {_some(self.units, 'group')}" if self._grouped else "")
        live = live_value(self.claim, self.rate)
        if self.claim.quantity == "error_quantile":
            return f"of {rows}, {live} are further away, and at most {show(self.bound, 'rate')} should be"
        if self._grouped or self.claim.unit == "number":
            return f"{live} in {rows}"
        return f"{self.errors if self.claim.relation == '<=' else self.units - self.errors:,.0f} in {rows}, {live}"

    def _notes(self) -> list[str]:
        """What was left out, or is strange."""
        notes = {
            f"{_some(self.unlabelled, 'row')} without a label left out": self.unlabelled,
            f"{_some(self.repeated, 'group')} seen before left out": self.repeated,
            f"{_some(self.unknown, 'row')} with a label the model never saw, counted as wrong": self.unknown,
            f"{_some(self.beyond, 'row')} with a loss above the stated bound, counted as the bound": self.beyond,
        }
        return [note for note, count in notes.items() if count]

    def plot(self, path: str | Path) -> None:
        """Draw the evidence over time, with the line at which the alarm is raised; PNG, SVG or PDF by the file's name."""
        from surelearn.monitoring.plot import draw

        title = f"Evidence against the certified {self.claim.quantity.replace('_', ' ')} {self.claim.bound()}"
        draw(Path(path), self.history, self.delta, title=title, counted=f"labelled {self._unit}s")

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "certificate": self.certificate.hash,
            "claim": self.claim.quantity,
            "delta": self.delta,
            **{name: getattr(self, name) for name in _COUNTS},
            "evidence": self._evidence.to_dict(),
            "groups": base64.b64encode(b"".join(sorted(self._groups))).decode(),
            "files": [asdict(file) for file in self._files],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], certificate: Certificate) -> Watch:
        """Read what `to_dict` wrote for this certificate; anything else is refused with a `ValueError` that says why."""
        check_format(plain, "the state of a watch", FORMAT, VERSION)
        if plain.get("certificate") != certificate.hash:
            raise ValueError("this is the watch of another certificate: its evidence says nothing about this one")
        try:
            watch = cls(certificate, plain["claim"], plain["delta"])
            watch._restore(plain)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"the watch's state is damaged: {reason}") from None
        return watch

    def _restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; a `ValueError` says which part of it cannot be right."""
        check_entries(plain, self.to_dict())
        for name in _COUNTS:
            setattr(self, name, whole(name, plain[name]))
        self._evidence = Evidence.from_dict(plain["evidence"], self._evidence.game.bound, self.delta)
        packed = base64.b64decode(plain["groups"], validate=True)
        self._groups = {packed[i : i + 8] for i in range(0, len(packed), 8)}
        require("groups", len(packed) == 8 * len(self._groups) == 8 * self.units * self._grouped)
        require("rows", self.units <= self.rows if self._grouped else self.units == self.rows)
        for file in plain["files"]:
            check_entries(file, _File("", 0, "").__dict__)
            require(
                "files",
                whole("files", file["rows"]) > 0 and isinstance(file["name"], str) and isinstance(file["sha256"], str),
            )
        self._files = [_File(**file) for file in plain["files"]]

    def save(self, path: str | Path) -> None:
        """Write the state as JSON; the file is replaced as a whole or not at all."""
        files.write(Path(path), json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

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


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
