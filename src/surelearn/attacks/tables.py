"""Tables with words in them as rows of numbers that attacks can move, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.attacks.domains import Array, Domain, domain
from surelearn.subject import predict_with
from surelearn.types import Model


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """A table as numbers; made by `encode_table`.

    Attributes
    ----------
    rows : (n, d); of a column of words, the number of the word
    where : ranges and standard deviations seen, words as choices
    words : the words of those columns, by column number
    """

    rows: Array
    where: Domain
    words: Mapping[int, tuple[Any, ...]]
    table: Any

    def decode(self, rows: Array) -> Any:
        """Rows of numbers as a table like the one encoded."""
        columns: dict[Any, Any] = {}
        for j, name in enumerate(self.table.columns):
            if j in self.words:
                said = np.array(self.words[j], dtype=object)[rows[:, j].astype(int)]
                columns[name] = type(self.table[name])(said).astype(self.table[name].dtype)
            else:
                columns[name] = rows[:, j]
        return type(self.table)(columns)

    def predicting(self, model: Model) -> Callable[[Array], Any]:
        """The model as a function of rows of numbers, for `decision_attack`."""
        predict = predict_with(model)
        return lambda rows: predict(self.decode(np.asarray(rows)))


def encode_table(table: Any, fixed: Iterable[Any] = (), cost: npt.ArrayLike = 1.0) -> EncodedTable:
    """A pandas table as rows of numbers with their domain; columns with missing values do not move.

    Parameters
    ----------
    table : words, as others in their column, may be substituted if the attack is told how many;
        numbers move
    fixed : columns that do not change
    cost : of a substitution, in standard deviations of a number; one, or one per column

    Examples
    --------
    >>> import pandas as pd
    >>> made = encode_table(pd.DataFrame({"age": [30.0, 50.0], "job": ["cook", "nurse"]}))
    >>> made.rows.tolist(), dict(made.where.choices)
    ([[30.0, 0.0], [50.0, 1.0]], {1: (0.0, 1.0)})
    >>> made.decode(made.rows)["job"].tolist()
    ['cook', 'nurse']
    """
    columns, words, still = [], {}, {str(name) for name in fixed}
    for j, name in enumerate(table.columns):
        column = table[name]
        if column.dtype.kind in "iufb" and not column.isna().any():
            columns.append(column.to_numpy(dtype=np.float64))
            still |= {str(name)} if column.dtype.kind == "b" else set()
            continue
        codes, known = column.factorize(use_na_sentinel=False)
        words[j] = tuple(known)
        still |= {str(name)} if column.isna().any() else set()
        columns.append(np.asarray(codes, dtype=np.float64))
    rows = np.column_stack(columns)
    names = [str(name) for name in table.columns]
    choices = {j: range(len(known)) for j, known in words.items() if names[j] not in still}
    low, high, fixed = rows.min(axis=0), rows.max(axis=0), sorted(still)
    where = domain(
        names, low=low, high=high, scale=rows.std(axis=0), fixed=fixed, choices=choices, cost=cost
    )
    return EncodedTable(rows, where, words, table)
