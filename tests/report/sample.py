"""A realistic `Audit` for the tests: a real certificate, and sections as the audit fills them."""

from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn.bounds import hoeffding, linear_radius, poisoning_threshold, robust_accuracy, vc
from surelearn.certificate import Certificate, Facts
from surelearn.certification import certify
from surelearn.claim import Covers, Finding
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Audit, Chart, PageTable, Section, Verdict
from surelearn.report.rows import bound_words
from surelearn.slicing import cut


def sample_audit() -> Audit:
    """Logistic regression on breast-cancer data; selection and learning curve are numbers of an
    earlier run.
    """
    certificate, predicted, observed, X = _certified()
    errors, found = (
        " **".join(bound_words(certificate[quantity])) for quantity in ("risk", "sensitivity")
    )
    gain = show(certificate["gain"].value, "rate", ">=").removesuffix("%")
    sentence = (
        f"On new rows like these, {errors} errors**, at least **{gain} percentage points fewer**"
        f" than always answering ‘benign’, and {found} of malignant cases recognized**; all three"
        " hold together with 95% confidence."
    )
    return Audit(
        title="breast_cancer",
        target="diagnosis",
        rows=569,
        columns=30,
        verdict=Verdict(kind="guaranteed", sentence=sentence),
        chips=(
            "logistic regression, chosen among 6",
            "171 rows held back for this page",
            "no earlier audit known here",
        ),
        certificate=certificate,
        sections=(
            *_measured(certificate, predicted, observed),
            _assumed(),
            *_details(certificate, X),
        ),
        reproduce="surelearn audit breast_cancer.csv --target diagnosis --positive malignant",
    )


@cache
def _certified():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    order = np.random.default_rng(0).permutation(len(y))
    fit, hold = order[171:], order[:171]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.iloc[fit], y.iloc[fit])
    slices = cut(X.iloc[fit], "mean radius")
    certificate = certify(
        model, X.iloc[hold], y.iloc[hold], positive="malignant", majority="benign", slices=slices
    )  # fmt: skip
    alone = (
        hoeffding.certify(0.03, 171, 0.025, label="errors, by another theorem"),
        vc.certify(0.02, 398, 0.025, 31, label="errors, from the fit rows"),
    )
    absent = Lacking(
        what="stability",
        reason="the regularization was chosen on the rows: pass `regularization=` beforehand",
    )
    certificate = Certificate(
        facts=certificate.facts,
        claims=(*certificate.claims, *alone),
        lacking=(absent,),
        delta=certificate.delta,
    )
    predicted = model.predict_proba(X.iloc[hold])[:, 1]
    return certificate, predicted, (y.iloc[hold] == "malignant").to_numpy(), X


def _measured(certificate, predicted, observed):
    return (
        _drawn("selection", "Model selection", "candidates", "Selection error of six candidates, ± one standard error",
               _candidates(), "10-fold cross-validation on 398 rows; the simplest within one standard error."),
        _drawn("curve", "Learning curve", "curve", "Held-out error against training rows", _curve(),
               "The curve is flat from 250 training rows on."),
        _drawn("calibration", "Calibration", "reliability", "Reliability diagram",
               _reliability(predicted, observed), "No miscalibration was found in 171 rows."),
        _drawn("slices", "Error slices", "bars", "Errors by mean radius", _slices(certificate),
               "Quarters of the fit rows by mean radius."),
        Section(
            key="robustness",
            title="Adversarial robustness",
            claims=(
                robust_accuracy.certify(139, 150, 0.05, label="robust accuracy on new rows within 0.1"),
                linear_radius.certify(2.0, 4.0, label="certified radius of row 7"),
                poisoning_threshold.certify(-0.1, label="poison for a target that needs none"),
            ),
        ),
        Section(
            key="stability",
            title="Findings",
            findings=(
                Finding(code="SL301", severity="notice", text="Refits on 90% of the rows change 1.2% of predictions."),
                Finding(code="SL204", severity="warning", text="Three pairs of columns repeat each other (r > 0.99)."),
                Finding(code="SL202", text="No column gives the target away."),
            ),
            notes=("The largest change of a probability under refitting is 0.31.",),
        ),
    )  # fmt: skip


def _drawn(key, title, kind, chart_title, data, note):
    return Section(
        key=key,
        title=title,
        charts=(Chart(kind=kind, title=chart_title, data=data),),
        notes=(note,),
    )


def _candidates():
    values = {
        "always ‘benign’": (0.372, 0.030),
        "logistic regression": (0.021, 0.008),
        "nearest neighbors": (0.035, 0.011),
        "kernel SVM": (0.023, 0.009),
        "boosted stumps": (0.034, 0.010),
        "random forest": (0.041, 0.011),
    }
    errors, spreads = zip(*values.values(), strict=True)
    return {"names": list(values), "values": errors, "errors": spreads, "chosen": 1, "unit": "rate"}


def _curve():
    y = np.array([0.071, 0.052, 0.044, 0.035, 0.031, 0.028, 0.027])
    spread = np.array([0.020, 0.014, 0.012, 0.010, 0.009, 0.008, 0.008])
    x = [40, 80, 120, 180, 240, 320, 398]
    return {
        "x": x,
        "y": y,
        "low": y - spread,
        "high": y + spread,
        "unit": "rate",
        "x_label": "training rows",
    }


def _slices(certificate):
    slices = [claim for claim in certificate.claims if claim.family == "slice"]
    return {
        "names": [claim.label.removeprefix("errors where ") for claim in slices],
        "measured": [claim.measured for claim in slices],
        "bounds": [claim.value for claim in slices],
        "unit": "rate",
    }


def _reliability(predicted, observed):
    bins = np.clip((predicted * 5).astype(int), 0, 4)
    groups = [bins == b for b in range(5) if (bins == b).any()]
    rate = np.array([observed[g].mean() for g in groups])
    counts = np.array([g.sum() for g in groups])
    half = 1 / np.sqrt(counts)
    return {"predicted": [predicted[g].mean() for g in groups], "observed": rate, "low": np.clip(rate - half, 0, 1),
            "high": np.clip(rate + half, 0, 1), "counts": counts, "unit": "rate"}  # fmt: skip


def _assumed():
    return Section(
        key="assumptions",
        title="Assumptions",
        place="assumptions",
        notes=(
            (
                "New rows come from the same source as these. This cannot be checked from this"
                " file; `surelearn watch` checks it on live data."
            ),
            (
                "Rows are independent. Not contradicted: no duplicates, no grouping seen. If"
                " several rows are one patient, use `--group`."
            ),
            "Held-back rows were not used before. The ledger shows no earlier audit.",
        ),
    )


def _details(certificate, X):
    bounds = {
        "Clopper–Pearson, held-back rows": (certificate["risk"].value, "guaranteed"),
        "betting interval": (0.071, "guaranteed"),
        "Hoeffding": (0.134, "guaranteed"),
        "compression (38 support points)": (0.271, "guaranteed"),
        "exact leave-one-out": (0.026, "measured"),
        "PAC-Bayes-kl": (0.412, "guaranteed"),
        "tail inversion, VC 31": (0.598, "guaranteed"),
        "uniform stability, λ = 0.01": (1.9, "vacuous"),
        "VC bound": (3.1, "vacuous"),
    }
    values, kinds = zip(*bounds.values(), strict=True)
    bounds = {"names": list(bounds), "values": values, "kinds": kinds, "unit": "rate"}
    rows = [
        (name, "number", f"{X[name].min():.4g}", f"{X[name].max():.4g}", "0") for name in X.columns
    ]
    return (
        Section(key="bounds", title="Generalization bounds compared", place="details",
                charts=(Chart(kind="bounds", title="Upper bounds on the risk, log scale", data=bounds),),
                notes=("Bounds above 100% say nothing about a risk. They pay for the richness of the model class; the "
                       "held-back rows do not.",)),
        Section(key="columns", title="Columns", place="details",
                tables=(PageTable(header=("column", "kind", "smallest", "largest", "missing"), rows=tuple(rows)),)),
    )  # fmt: skip


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style><script>alert(3)</script>",
    "</title></svg><svg onload=alert(4)>",
    "javascript:alert(5)",
    "{{ 7 * 7 }}{% raw %}",
    "a**b** | `c` [d](http://example.com) @team",
    "\u202eright to left\u202c שלום عربى",
    "zero\x00byte \x1b[31m \ud800 \ufffe",
    "日本語の長い列名" * 20,
    "x" * 5000,
)


def hostile_audit(names=HOSTILE) -> Audit:
    """The sample with names from its data that try to break out, wherever a name can stand."""
    audit = sample_audit()
    names = tuple(names)
    certificate = audit.certificate
    claims = [
        replace(claim, label=f"errors where {names[i % len(names)]}")
        for i, claim in enumerate(certificate.claims)
    ]
    facts = Facts(
        subject=names[0], setting=names[-1], hashes={n: n for n in names}, options={n: n for n in names},
        values={n: [0.5] * i for i, n in enumerate(names)},
    )  # fmt: skip
    ones = [0.5] * len(names)
    data = {
        "candidates": {
            "names": names,
            "values": ones,
            "errors": ones,
            "chosen": 0,
            "unit": names[0],
        },
        "bars": {"names": names, "measured": ones, "bounds": ones, "unit": "rate"},
        "bounds": {"names": names, "values": ones, "kinds": names, "unit": "rate"},
        "curve": {"x": ones, "y": ones, "low": ones, "high": ones, "x_label": names[0]},
        "reliability": {
            "predicted": ones,
            "observed": ones,
            "low": ones,
            "high": ones,
            "counts": ones,
        },
    }
    section = Section(
        key=names[0],
        title=names[0],
        notes=names,
        claims=tuple(
            linear_radius.certify(
                i,
                1.0,
                label=n,
                assumptions=names,
                covers=Covers(predictor=n, loss=n, population=n, rows=n),
            )
            for i, n in enumerate(names)
        ),
        findings=tuple(Finding(code=n, text=n, severity="serious") for n in names),
        charts=tuple(Chart(kind=kind, title=names[0], data=d) for kind, d in data.items()),
        tables=(PageTable(header=names[:2], rows=tuple((n, n) for n in names)),),
    )
    sections = tuple(
        replace(section, place=place) for place in ("measured", "assumptions", "details")
    )
    return replace(
        audit,
        title=names[0],
        target=names[-1],
        verdict=Verdict(
            kind="do not ship", sentence=" and ".join(["at most **6.7% errors**", *names])
        ),
        chips=names,
        certificate=Certificate(
            facts=facts,
            claims=tuple(claims),
            lacking=tuple(Lacking(what="risk", reason=n, label=n) for n in names),
            delta=0.05,
        ),
        sections=sections,
        reproduce="\n".join(names),
    )
