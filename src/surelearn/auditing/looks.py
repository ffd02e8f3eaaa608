"""Which look at these rows an audit is: recorded on disk before anything about the certify rows
is computed.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn import files
from surelearn.auditing.options import Options
from surelearn.auditing.seen import Seen, columns_of
from surelearn.certificate import Certificate
from surelearn.data import Table, hash_contents
from surelearn.documents import check_format, read_json, reading
from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows
from surelearn.lacking import Lacking
from surelearn.plain import sample_hash
from surelearn.selection.ledger import (
    Known,
    Ledger,
    LedgerArgument,
    Look,
    ledger_paths,
    state_folder,
)
from surelearn.selection.sketch import sketch
from surelearn.selection.split import Split, row_keys
from surelearn.subject import predict_with
from surelearn.types import AnyArray, Model, RowsLike, TableRows

# What changes nothing that is claimed; to vouch for rows is not to look at them.
UNCOUNTED = (
    "refits",
    "curve_repeats",
    "seed",
    "skip",
    "effort",
    "show_rows",
    "independent",
    "population",
)
LOSSES_FORMAT = "surelearn-losses"


def counted(options: Options) -> dict[str, object]:
    """The options that make another look: a look that was recorded before there were the later ones,
    and without them, is the same.
    """
    found = {name: value for name, value in options.stated().items() if name not in UNCOUNTED}
    return {k: value for k, value in found.items() if k != "require" or value is not None}


def known_table(table: Table, split: Split) -> Known:
    """How ledgers know a table: by all its columns but the target, and by the sequence of its
    targets.
    """
    features = [
        table.frame[name].to_numpy() for name in table.frame.columns if name != table.target
    ]
    targets = fingerprint_rows(np.sort(table.y), table.y[:0])
    names = {
        name: hashlib.sha256(name.encode()).hexdigest()[:12]
        for name in map(str, table.frame.columns)
    }
    return Known(
        sketch(hash_contents(features), table.y),
        np.unique(split.keys),
        targets,
        names[table.target],
        tuple(digest for name, digest in names.items() if name != table.target),
    )


def known_rows(X: TableRows, y: AnyArray, hashes: AnyArray) -> Known:
    """How ledgers know the rows of a model that was fitted elsewhere."""
    return Known(sketch(hash_contents(columns_of(X, y, "X")[:-1]), y), np.unique(row_keys(hashes)))


def describe_look(
    models: Sequence[tuple[Any, Any]],
    rival: Model | None,
    y: AnyArray,
    groups: npt.ArrayLike | None,
    options: Options,
    *,
    seen: Seen | None = None,
    name: str = "",
    target: str = "",
    kind: str = "audit",
    more: Iterable[str] = (),
    asked_of_rows: Iterable[str] = (),
) -> Look:
    """An audit of these models, each with the certify rows as it reads them, as the ledger will
    know it.

    ``models`` share the page's δ, as the two of a suspected leak do: auditing one of them alone
    later is not charged. ``asked_of_rows``: what else decides on a claim, such as weights.
    """
    asked = json.dumps(counted(options), sort_keys=True, default=str)
    beside = [] if rival is None else [fingerprint_model(rival), _answers(rival, models[0][1])]
    beside.append("" if groups is None else fingerprint_rows(np.asarray(groups), y[:0]))
    # they decide on units and on the majority
    beside += [] if seen is None else [fingerprint_rows(seen.X, seen.y)]
    beside += asked_of_rows
    hashes = [fingerprint_model(model) for model, _ in models]
    # a function cannot be recognized, so every look is a new one
    if UNHASHED in (*hashes, *beside):
        beside.append(uuid.uuid4().hex)
    # the same model on other rows, or on changed ones, is another look
    rows = [fingerprint_rows(X, y) for _, X in models]
    answers = [_answers(model, X) for model, X in models]
    kept = tuple(_sha(*one, asked, *beside) for one in zip(hashes, rows, answers, strict=True))
    audit = _sha(kind, *kept, *more)
    return Look(
        audit=audit,
        turn=1,
        table="",
        kind="gate" if kind == "gate" else "audit",
        models=() if kind == "gate" else kept,
        name=name,
        target=target,
        rows=len(y),
        loss_bound=options.loss_bound,
    )


def _answers(model: Model, X: RowsLike) -> str:
    """A hash of what a model answers, which may change with code of its own while its state
    stays as it was.
    """
    try:
        return fingerprint_rows(np.empty(0), np.asarray(predict_with(model)(X)))
    except (Exception, SystemExit):  # what is wrong with it is said where its answers are used
        return "none"


def open_ledger(ledger: LedgerArgument, path: Path | None) -> Ledger | None:
    """The ledgers that know these data; None where none is kept."""
    paths = ledger_paths(path, ledger)
    return Ledger(*paths) if paths else None


def raised_bound(look: Look, earlier: Iterable[Look]) -> Lacking | None:
    """Why a stated loss bound is not used, if these rows have contradicted a smaller one before:
    they chose it then.

    A gate that failed does not say why, so that its bound counts as contradicted.
    """
    if look.loss_bound is None:
        return None
    refused = [e for e in earlier if e.contradicted or e.answer == "fail"]
    smaller = [e.loss_bound for e in refused if e.loss_bound is not None and e.audit != look.audit]
    below = [bound for bound in smaller if bound < look.loss_bound]
    if not below:
        return None
    said = (
        f"the bound {look.loss_bound:g} was stated after these rows had contradicted {max(below):g}"
    )
    return Lacking(
        what="mean_loss", theorem="betting_upper", reason=f"{said}, or a gate with it had failed"
    )


def keep_losses(certificate: Certificate) -> None:
    """Write the losses per row, which are not published, where the user's ledger lies, if that
    can be written.
    """
    samples = certificate.samples()
    if samples:
        plain = {
            "format": LOSSES_FORMAT,
            "version": 1,
            "note": (
                "losses per certify row: whoever has them can build a model that looks better on"
                " these rows than it is"
            ),
            "certificate": certificate.published().hash,
            "samples": {key: list(values) for key, values in samples.items()},
        }
        with suppress(OSError):  # then `verify` says what it could not recompute
            files.write(losses_path(certificate), json.dumps(plain) + "\n")


def kept_losses(certificate: Certificate) -> Mapping[str, tuple[float, ...]]:
    """The losses per row of a published certificate, as far as this user has them."""
    path = losses_path(certificate)
    if not path.is_file():
        return {}
    try:
        plain = read_json(path, "it")
        with reading("it"):
            check_format(plain, "a file of losses", LOSSES_FORMAT, 1)
            samples = {
                str(key): tuple(map(float, values)) for key, values in plain["samples"].items()
            }
        if any(sample_hash(values) != key for key, values in samples.items()):
            raise ValueError("its losses are not those of their hashes")
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read ({str(error)[:80]}): put it back, or delete it to verify"
            " without losses per row"
        ) from None
    return samples


def losses_path(certificate: Certificate) -> Path:
    """The file of the losses per row behind a certificate."""
    return (
        state_folder()
        / "losses"
        / f"{certificate.published().hash.removeprefix('sha256:')[:32]}.json"
    )


def _sha(*parts: str) -> str:
    return f"sha256:{hashlib.sha256('|'.join(parts).encode()).hexdigest()}"
