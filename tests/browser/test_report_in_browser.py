"""Report pages in a real browser: nothing asked of the network, Python's scores, no faults."""

import numpy as np
import pandas as pd
import pytest
from browsing import axe, chromium, open_page  # noqa: F401  # fixtures
from pages import CASES, HOSTILE, digits, page, people

TOLERANCE = 1e-5


@pytest.fixture
def opened(open_page, tmp_path):  # noqa: F811
    def open_case(name, **settings):
        path = tmp_path / f"{name}.html"
        path.write_text(page(name), encoding="utf-8")
        return open_page(path, **settings)

    return open_case


def rows_of(found, X):
    """Return rows of values, as a page has them, in the form of X."""
    if isinstance(X, pd.DataFrame):
        frame = pd.DataFrame(found, columns=X.columns)
        return frame.astype({name: X[name].dtype for name in X.columns})
    return np.array(found, dtype=float)


def assert_same(found, expected):
    expected = np.asarray(expected)
    found = np.reshape(found, expected.shape)
    assert np.abs(found - expected).max() <= TOLERANCE * max(1.0, np.abs(expected).max())


@pytest.mark.every_case
@pytest.mark.parametrize("name", CASES)
def test_opens_from_disk_without_faults_and_says_what_python_says(opened, name):
    machine, X, _, _ = CASES[name]()
    shown = opened(name)
    answers = shown.evaluate("widemargin.examples.map((values) => widemargin.predict(values))")
    rows = rows_of(shown.evaluate("widemargin.examples"), X)
    assert len(rows) > 3
    assert_same([each["scores"] for each in answers], machine.decision_function(rows))
    if machine.classes_ is not None and hasattr(machine, "predict_proba"):
        shares = machine.predict_proba(rows)
        assert_same([each["probabilities"] for each in answers], shares)
    assert shown.evaluate("typeof hacked") == "undefined"
    assert shown.locator("img[src=x]").count() == 0
    assert shown.faults == []


def test_fields_move_the_scores(opened):
    pipeline, X, _, _ = people()
    shown = opened("people")
    shown.fill("#field-0", "33.5")
    shown.select_option("#field-2", label=HOSTILE)
    shown.fill("#field-1", "")
    row = rows_of([[33.5, None, HOSTILE]], X)
    score = pipeline.decision_function(row)[0]
    cells = shown.locator("#live-scores tr").evaluate_all("rows => rows.map(r => r.dataset.score)")
    assert_same([float(each) for each in cells], [-score, score])
    assert shown.locator("#live-answer").text_content().startswith(pipeline.predict(row)[0])
    shown.locator("input[type=range]").first.focus()
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("widemargin.values()[0]") > 33.5
    shown.select_option("#field-2", label="(another)")
    row = rows_of([[shown.evaluate("widemargin.values()[0]"), None, "unheard of"]], X)
    answer = shown.evaluate("widemargin.predict(widemargin.values())")
    assert_same(answer["scores"], pipeline.decision_function(row))
    assert shown.faults == []


def test_a_line_of_values(opened):
    shown = opened("people")
    shown.locator("#live details summary").click()
    shown.fill("#live-line", '51,0.25,"state"')
    shown.locator("#live-line").blur()
    assert shown.evaluate("widemargin.values()") == [51, 0.25, "state"]
    assert shown.input_value("#field-0") == "51"
    shown.fill("#live-line", "51")
    shown.locator("#live-line").blur()
    assert shown.text_content("#live-line-error") == "A row has 3 values; the line has 1."


def test_drawing_by_pointer_and_keyboard(opened):
    machine, X, _, _ = digits()
    shown = opened("digits")
    shown.get_by_role("button", name="Clear the drawing").click()
    assert set(shown.evaluate("widemargin.values()")) == {0}
    canvas = shown.locator("canvas")
    box = canvas.bounding_box()
    shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    shown.mouse.down()
    shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 30, steps=12)
    shown.mouse.up()
    drawn = shown.evaluate("widemargin.values()")
    assert 12 < max(drawn) <= X.to_numpy().max()
    expected = machine.predict_proba(rows_of([drawn], X))[0]
    shares = shown.locator("#live-scores td.meter").evaluate_all(
        "all => all.map(c => c.dataset.value)"
    )
    assert_same([float(each) for each in shares], expected)
    canvas.focus()
    shown.keyboard.press("Delete")
    for key in ("ArrowLeft", "ArrowUp", " "):
        shown.keyboard.press(key)
    assert shown.evaluate("widemargin.values()[3 * 8 + 3]") == X.to_numpy().max()
    assert shown.faults == []


def test_colours_follow_the_system_and_the_switch(opened):
    def paper(shown):
        return shown.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = opened("scenes", color_scheme="light"), opened("scenes", color_scheme="dark")
    assert paper(light) != paper(dark)
    light.get_by_role("button", name="Dark").click()
    assert paper(light) == paper(dark)
    light.emulate_media(media="print")
    assert light.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_pictures_are_light_in_the_dark_and_ink_on_paper(opened):
    shown = opened("digits", color_scheme="dark")

    def has_filter(selector):
        first = shown.locator(selector).first
        return first.evaluate("element => getComputedStyle(element).filter") != "none"

    assert has_filter("canvas")
    assert has_filter(".gallery img")
    shown.emulate_media(media="print")
    assert not has_filter("canvas")
    assert not has_filter(".gallery img")


@pytest.mark.every_case
@pytest.mark.parametrize("name", CASES)
def test_nothing_sticks_out_of_a_narrow_screen(opened, name):
    shown = opened(name, viewport={"width": 360, "height": 700})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.every_case
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("name", CASES)
def test_accessible(opened, axe, name, colours):  # noqa: F811
    # A policy of the page keeps foreign scripts out; this one comes through the debugger.
    shown = opened(name, color_scheme=colours)
    shown.evaluate(axe)
    shown.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = shown.evaluate("axe.run().then((result) => result.violations)")
    told = [
        f"{each['id']}: {each['help']} {[node['target'] for node in each['nodes']][:3]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert told == []
