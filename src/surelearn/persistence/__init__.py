"""Save and load models without executing code: a folder with a manifest and one file of arrays.

scikit-learn models are kept in skops' format, whose types must all be on a fixed list; surelearn's
own as arrays (safetensors) and JSON. Files name surelearn's classes by stable keys ("ridge/1"),
never by modules: a class that moves breaks no model, and no file says what is imported. Pickle is
never opened. The manifest is written last and names the other file by its hash, so that an
interrupted save leaves the model that was there before.
"""

from surelearn.persistence.manifest import MANIFEST
from surelearn.persistence.models import Saved, find_model, load, read_model, save
from surelearn.persistence.trusted import TRUSTED

__all__ = ["MANIFEST", "TRUSTED", "Saved", "find_model", "load", "read_model", "save"]
