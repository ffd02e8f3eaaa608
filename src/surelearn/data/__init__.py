"""Reading tables: files and frames become typed columns, with what is odd about them."""

from surelearn.data.columns import Column, DataError
from surelearn.data.formats import BUILT_IN
from surelearn.data.table import Table, hash_contents, hash_rows, read_table

__all__ = ["BUILT_IN", "Column", "DataError", "Table", "hash_contents", "hash_rows", "read_table"]
