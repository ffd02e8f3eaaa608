"""`Audit`: the document with its renderings, and the folder that it is written to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surelearn.report.document import Document

FILES = {
    "page": "report.html",
    "text": "report.md",
    "numbers": "audit.json",
    "certificate": "certificate.json",
    "model": "model",
}
_FORMATS = ("html", "md")


class Audit(Document):
    """What `surelearn.audit` returns: claims and findings about one model, as data, and as the page
    that is drawn from them.

    Its attributes are those of `surelearn.report.document.Document`.
    """

    def to_html(self) -> str:
        """The self-contained page."""
        from surelearn.report.html import render

        return render(self)

    def to_markdown(self) -> str:
        """A short text for a pull request."""
        from surelearn.report.markdown import render

        return render(self)

    def write(
        self, folder: str | Path, formats: Sequence[str] = ("html",), *, model: bool = True
    ) -> dict[str, str]:
        """Write the folder that ``surelearn audit`` writes: page, numbers, certificate and model.

        All of it is written beside the folder first; what a kill in the last moment left there, the
        next write puts in its place.

        Parameters
        ----------
        folder : made if it does not exist; what an earlier audit left there is replaced
        formats : "html" for ``report.html``, "md" for ``report.md``
        model : False keeps the model that is there: the same, from when fewer sections were known

        Returns
        -------
        where what is, or why it is not: a model of a class of your own may have parts that cannot
        be kept
        """
        from surelearn.persistence.folder import write_folder

        if unknown := sorted({*formats} - {*_FORMATS}):
            raise ValueError(f"formats must be among {', '.join(_FORMATS)}, not {unknown[0]!r}")
        certificate = self.certificate.published()
        texts = {
            "audit.json": self.to_json() + "\n",
            "certificate.json": certificate.to_json() + "\n",
        }
        if "html" in formats:
            texts["report.html"] = self.to_html()
        if "md" in formats:
            texts["report.md"] = self.to_markdown()
        kept = {"certificate": certificate, "schema": self.schema, "reference": self.reference}
        return write_folder(folder, texts, self.model if model else None, kept, FILES)

    def _repr_html_(self) -> str:
        from surelearn.report.html import render_inline

        return render_inline(self)
