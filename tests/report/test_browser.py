"""The page in a real browser: accessible in both themes, silent, self-contained, printable,
narrow enough for a phone.
"""

import base64
import importlib.util
import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import surelearn
from surelearn.auditing.answers import audit_answers

QUICK = {"ledger": False, "refits": 2, "curve_repeats": 2, "effort": 0.2}
SAMPLE = runpy.run_path(str(Path(__file__).with_name("sample.py")))
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
CHROMEDRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --disable-dev-shm-usage --hide-scrollbars"
)


def axe_path():
    """The axe-core script that a Python package brings along."""
    for package in ("axe_playwright_python", "axe_core_python"):
        spec = importlib.util.find_spec(package)
        if spec and spec.origin and (path := Path(spec.origin).with_name("axe.min.js")).exists():
            return path
    return None


def missing():
    parts = {
        "chromium (apt-get install chromium)": CHROMIUM,
        "chromedriver (apt-get install chromium-driver)": CHROMEDRIVER,
        "selenium (pip install selenium)": importlib.util.find_spec("selenium"),
        "axe-core (pip install axe-core-python)": axe_path(),
    }
    return ", ".join(name for name, found in parts.items() if not found)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"no browser tests without {missing()}"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def scored_with_sets():
    """Scores of three classes, certified with prediction sets of each."""
    rng, names = np.random.default_rng(0), np.array(["malignant", "benign", "inconclusive"])
    label = rng.integers(0, 3, 900)
    z = rng.normal(size=(900, 3)) + 2.5 * np.eye(3)[label]
    shares = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    table = pd.DataFrame({f"p_{name}": shares[:, i] for i, name in enumerate(names)})
    table["label"] = names[label]
    given = {"truth": "label", "probability": "p_*", "sets": 0.1, "per_class": True}
    return audit_answers(table, ledger=False, **given)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    audit, hostile = SAMPLE["sample_audit"](), SAMPLE["hostile_audit"]()
    inline = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        <title>notebook</title><body><main>{}</main></body></html>"""
    texts = {
        "sample": audit.to_html(),
        "audited": (
            surelearn.audit(
                "breast_cancer", models=LogisticRegression(), positive="malignant", **QUICK
            ).to_html()
        ),
        "audited numbers": (
            surelearn.audit("diabetes", models=Ridge(), loss_bound=400.0, **QUICK).to_html()
        ),
        "sets": scored_with_sets().to_html(),
        "hostile": hostile.to_html(),
        "inline": inline.format(audit._repr_html_()),
        "hostile inline": inline.format(hostile._repr_html_()),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


def visit(browser, address, *, theme="light", width=1000, unfold=False):
    """Open a page and empty the logs of what came before."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(address)
    if unfold:
        browser.execute_script(
            "document.querySelectorAll('details').forEach(fold => { fold.open = true })"
        )


def requests(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["sample", "hostile", "audited", "audited numbers"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(browser, pages, name, theme, width):
    visit(browser, pages[name], theme=theme, width=width, unfold=True)
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(253, 253, 251)", "dark": "rgb(20, 23, 26)"}[theme]
    browser.execute_script(axe_path().read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1]; axe.run(document).then(done, error =>"
        " done({error: String(error)}))"
    )
    assert "error" not in found, found
    assert len(found["passes"]) > 20
    violations = [
        (v["id"], node["html"][:200], node["failureSummary"])
        for v in found["violations"]
        for node in v["nodes"]
    ]
    assert violations == []


@pytest.mark.parametrize(
    "name", ["sample", "hostile", "inline", "hostile inline", "audited", "audited numbers"]
)
def test_silent_and_self_contained(browser, pages, name):
    visit(browser, pages[name], unfold=True)
    assert browser.get_log("browser") == []
    assert [address for address in requests(browser) if not address.startswith("file:")] == []
    assert browser.execute_script("return document.scripts.length") == 0


@pytest.mark.parametrize("name", ["hostile", "hostile inline"])
def test_hostile_names_are_inert(browser, pages, name):
    from selenium.common.exceptions import NoAlertPresentException

    visit(browser, pages[name], unfold=True)
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert.text
    strange = (
        "script, img, iframe, object, embed, [onload], [onerror], [href]:not([href^='#section-']),"
        " [src]"
    )
    assert (
        browser.execute_script("return document.querySelectorAll(arguments[0]).length", strange)
        == 0
    )
    assert "<script>alert(1)</script>" in browser.execute_script("return document.body.innerText")


@pytest.mark.parametrize(
    "name", ["sample", "hostile", "inline", "audited", "audited numbers", "sets"]
)
@pytest.mark.parametrize("unfold", [False, True])
@pytest.mark.parametrize("width", [320, 390, 700, 1000, 1280])
def test_no_horizontal_scroll(browser, pages, name, unfold, width):
    visit(browser, pages[name], width=width, unfold=unfold)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_on_a_phone_the_table_of_sets_is_whole(browser, pages):
    visit(browser, pages["sets"], width=390)
    wide = browser.execute_script("""
        const tables = [...document.querySelectorAll('[aria-label="Prediction sets"] .scroll')]
        return tables.map(one => [one.clientWidth, one.scrollWidth])""")
    assert wide
    assert all(inner <= outer for outer, inner in wide), wide


@pytest.mark.parametrize("name", ["sample", "audited", "audited numbers"])
def test_no_half_of_the_columns_is_empty(browser, pages, name):
    visit(browser, pages[name], width=1280)
    cards, columns = browser.execute_script("""
        const columns = [...document.querySelectorAll('.packed > div')].map(c => [...c.children])
        const box = card => card.getBoundingClientRect()
        return [columns.flat().map(card => box(card).height),
                columns.map(cards => box(cards.at(-1)).bottom - box(cards[0]).top)]""")
    assert len(columns) == 2
    assert max(columns) - min(columns) <= max(0.12 * max(columns), min(cards))


@pytest.mark.parametrize("name", ["sample", "audited"])
def test_on_a_phone_the_cards_stand_in_the_order_of_the_contents(browser, pages, name):
    visit(browser, pages[name], width=390)
    tops = browser.execute_script("""
        const links = [...document.querySelectorAll('.toc a')].map(a => a.getAttribute('href'))
        return links.map(link => document.querySelector(link).getBoundingClientRect().top)""")
    shown = [top for top in tops if top]  # what is folded has no place yet
    assert len(shown) > 6
    assert shown == sorted(shown)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_contents_lead_to_each_place(browser, pages, width):
    from selenium.webdriver.common.by import By

    visit(browser, pages["audited"], width=width)
    links = browser.find_elements(By.CSS_SELECTOR, ".toc a")
    assert len(links) > 12
    for link in (links[0], links[len(links) // 2], links[-1]):
        link.click()
        target = browser.find_element(By.CSS_SELECTOR, link.get_attribute("hash"))
        seen = browser.execute_script(
            "const r = arguments[0].getBoundingClientRect();"
            " return arguments[0].checkVisibility() && r.top < innerHeight && r.bottom > 0",
            target,
        )
        assert seen, link.text  # what is folded opens


@pytest.mark.parametrize("name", ["sample", "audited", "audited numbers"])
def test_no_backticks(browser, pages, name):
    visit(browser, pages[name], unfold=True)
    assert "`" not in browser.execute_script("return document.body.innerText")


def test_labels_do_not_leave_their_card_or_touch(browser, pages):
    visit(browser, pages["sample"], unfold=True)
    problems = browser.execute_script("""
        const problems = []
        for (const svg of document.querySelectorAll('svg.chart, svg.bar')) {
            const around = svg.parentElement.getBoundingClientRect()
            const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()])
            boxes.forEach(([text, box], i) => {
                if (box.left < around.left || box.right > around.right) problems.push('outside: ' + text)
                for (const [other, b] of boxes.slice(i + 1))
                    if (box.left < b.right && b.left < box.right && box.top + 2 < b.bottom && b.top + 2 < box.bottom)
                        problems.push(text + ' touches ' + other)
            })
        }
        return problems""")
    assert problems == []


def test_every_mark_has_a_tooltip(browser, pages):
    visit(browser, pages["sample"])
    marks = (
        "return [...document.querySelectorAll('svg.chart circle, svg.bar circle, svg.chart path')]"
    )
    titled = (
        "mark => mark.closest('g:has(> title), circle:has(> title),"
        " svg.bar')?.querySelector('title')?.textContent"
    )
    titles = browser.execute_script(f"{marks}.map({titled})")
    assert len(titles) > 25
    assert all(titles)


def test_it_prints_with_its_details(browser, pages):
    visit(browser, pages["sample"], theme="dark")
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    seen = browser.execute_script(
        "return [...document.querySelectorAll('.inside')].map(part => part.checkVisibility())"
    )
    assert len(seen) > 5
    assert all(seen)
    assert (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
