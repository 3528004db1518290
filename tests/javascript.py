"""JavaScript in tests: an engine without a browser, and a browser where the machine has one."""

import json
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def engine():
    """Return a function that evaluates JavaScript, promises too, and gives back its value."""
    context = pytest.importorskip("py_mini_racer").MiniRacer()

    def evaluate(script):
        text = context.eval(f"(async () => JSON.stringify(await ({script})))()").get(timeout=60)
        return json.loads(text)

    def run(script):
        context.eval(script)

    evaluate.run = run
    return evaluate


def browser_path():
    """Return where a Chromium is; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("there is no Chromium")
    return found
