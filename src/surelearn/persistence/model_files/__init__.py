"""Models in files, of surelearn and of other libraries, as what answers the rows of a table: read
without running anything that the file holds.
"""

from surelearn.persistence.model_files.columns import Reads
from surelearn.persistence.model_files.model_file import Answered, ModelFile, as_model_file
from surelearn.persistence.model_files.reading import (
    READERS,
    is_factory,
    is_model,
    read_model_file,
)

__all__ = [
    "READERS",
    "Answered",
    "ModelFile",
    "Reads",
    "as_model_file",
    "is_factory",
    "is_model",
    "read_model_file",
]
