"""A reproduction's page and its numbers: self-contained, no script, the same bytes for the same
outcome.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from surelearn.papers.figures import draw
from surelearn.papers.reproduction import Outcome
from surelearn.plain import freeze, to_plain
from surelearn.report.drawing import clean
from surelearn.report.html import clip, prose
from surelearn.version import __version__

CSS = """
.sl .chart.broad{max-width:760px;min-width:520px}.sl .box{fill:var(--band);stroke:var(--m);stroke-width:1.5}
.sl .middle{stroke:var(--m);stroke-width:3}.sl .ring{fill:none;stroke:var(--soft);stroke-width:1.2}.sl .mean{fill:var(--ink)}
.sl .curve{fill:none;stroke-width:1.8}.sl .c0{stroke:var(--soft)}.sl .c1{stroke:var(--ink);stroke-dasharray:2 3}
.sl .c2{stroke:var(--g);stroke-dasharray:7 3}.sl .c3{stroke:var(--m)}
.sl .card+.card{margin-top:1rem}.sl .plain thead td{border-top:0}
.sl .plain td:not(:first-child),.sl .plain thead th:not(:first-child){text-align:right}
.sl .plain.words td:not(:first-child),.sl .plain.words thead th:not(:first-child){text-align:left}
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>surelearn reproduce {{ made.name }}</title>
<style>{{ css }}</style></head>
<body class="sl page">
<header><p class="crumb">surelearn reproduce · {{ made.name|clip }} · {{ outcome.source|clip }}</p>
<h1>{{ outcome.headline }}</h1></header>
<main>
<section aria-label="Findings"><h2>What came out <span class="tag m">measured</span></h2>
<div class="card"><ul>{% for sentence in outcome.findings %}<li>{{ sentence|prose }}</li>{% endfor %}</ul></div></section>
{% if outcome.figures %}
<section aria-label="Figures"><h2>Figures</h2>
{% for figure in outcome.figures %}
<div class="card"><h3>{{ figure.title }}</h3>
<div class="scroll" tabindex="0" role="group" aria-label="{{ figure.title }}">
{{ figure|draw }}
</div>
{% if figure.note %}<p class="note">{{ figure.note|prose }}</p>{% endif %}</div>
{% endfor %}
</section>
{% endif %}
{% if outcome.parts %}
<section aria-label="Numbers"><h2>Numbers</h2>
{% for part in outcome.parts %}
<div class="card"><h3>{{ part.title }}</h3>
{{ table(part.table, part.title) }}
{% if part.note %}<p class="note">{{ part.note|prose }}</p>{% endif %}</div>
{% endfor %}
</section>
{% endif %}
<section aria-label="How it was made"><h2>How it was made</h2>
<div class="card"><pre tabindex="0"><code>{{ made.command }}</code></pre>
{% if outcome.notes %}<ul>{% for note in outcome.notes %}<li>{{ note|prose }}</li>{% endfor %}</ul>{% endif %}
{% if made.meanings %}
<div class="scroll" tabindex="0" role="group" aria-label="Settings"><table class="plain words">
<thead><tr><th scope="col">setting</th><th scope="col">value</th><th scope="col">meaning</th></tr></thead>
<tbody>{% for name, (default, meaning) in made.meanings.items() %}
<tr><th scope="row"><code>{{ name }}</code></th><td>{{ made.settings[name] }}{% if made.settings[name] != default %} <span class="tag m">by default {{ default }}</span>{% endif %}</td><td>{{ meaning }}</td></tr>
{% endfor %}</tbody></table></div>
{% endif %}
<p class="note">Seed {{ made.seed }} · {% for name, number in versions.items() %}{{ name }} {{ number }}{{ " · " if not loop.last }}{% endfor %}</p>
</div></section>
</main>
<footer><p>surelearn {{ versions.surelearn }} · every number stands in results.json beside this page</p></footer>
</body></html>
"""  # noqa: E501 - a page

TABLE = """{% macro table(table, label) %}
<div class="scroll" tabindex="0" role="group" aria-label="{{ label }}"><table class="plain">
<thead><tr>{% for cell in table.header %}{% if cell or not loop.first %}<th scope="col">{{ cell|clip }}</th>{% else %}<td></td>{% endif %}{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr>{% for cell in row %}{% if loop.first %}<th scope="row">{{ cell|clip }}</th>{% else %}<td class="r">{{ cell|clip }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
"""  # noqa: E501 - a page


@dataclass(frozen=True, kw_only=True)
class Made:
    """What made an outcome: the name, the command that gives it again, the seed, the settings
    and what they mean.
    """

    name: str
    command: str
    seed: int
    settings: Mapping[str, Any]
    meanings: Mapping[str, tuple[Any, str]]


def versions() -> dict[str, str]:
    """What numbers may depend on."""
    used = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return {"surelearn": __version__, "python": platform.python_version(), **used}


def to_html(outcome: Outcome, made: Made) -> str:
    """The page."""
    return _template().render(outcome=outcome, made=made, versions=versions())


def to_json(outcome: Outcome, made: Made) -> str:
    """Every number, and what made it."""
    content = {
        "name": made.name,
        "source": outcome.source,
        "command": made.command,
        "seed": made.seed,
        "settings": dict(made.settings),
        "versions": versions(),
        "headline": outcome.headline,
        "findings": outcome.findings,
        "notes": outcome.notes,
        "tables": [
            {"title": p.title, "header": p.table.header, "rows": p.table.rows}
            for p in outcome.parts
        ],
        "numbers": outcome.numbers,
    }
    return (
        json.dumps(to_plain(freeze(content)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.filters |= {"draw": draw, "prose": prose, "clip": clip}
    shared = files("surelearn.report").joinpath("page.css").read_text(encoding="utf-8")
    environment.globals["css"] = Markup(shared + CSS)  # noqa: S704 - our own
    return environment.from_string(TABLE + PAGE)
