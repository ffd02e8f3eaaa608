"""The page of a reproduction in a real browser: accessible in both themes, silent,
self-contained, readable on a phone.
"""

import runpy
from pathlib import Path

import pytest

from surelearn.papers import find, reproduce
from surelearn.papers.page import Made, to_html

REPORT = runpy.run_path(str(Path(__file__).parents[1] / "report" / "test_browser.py"))
browser, visit, requests = REPORT["browser"], REPORT["visit"], REPORT["requests"]
pytestmark = REPORT["pytestmark"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    addresses = {}
    for name in ("thesis-table-5.1", "thesis-figure-5.1", "thesis-figure-5.3"):
        settings = {"problems": 3, "variant_problems": 2} if "figure" in name else {}
        meanings = find(name).meanings()
        used = {key: default for key, (default, _) in meanings.items()} | settings
        made = Made(
            name=name,
            command=f"surelearn reproduce {name}",
            seed=0,
            settings=used,
            meanings=meanings,
        )
        path = folder / f"{name}.html"
        path.write_text(to_html(reproduce(name, **settings), made), encoding="utf-8")
        addresses[name] = path.as_uri()
    return addresses


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000])
def test_axe_finds_nothing(browser, pages, theme, width):
    for name in pages:
        REPORT["test_axe_finds_nothing"](browser, pages, name, theme, width)


def test_silent_self_contained_and_narrow_enough(browser, pages):
    for address in pages.values():
        visit(browser, address, width=400)
        assert browser.get_log("browser") == []
        assert [asked for asked in requests(browser) if not asked.startswith("file:")] == []
        assert browser.execute_script("return document.scripts.length") == 0
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
