"""A browser for the tests of this folder, where the machine has one."""

import json
import shutil
import subprocess

import pytest
from javascript import browser_path

AXE = "node_modules/axe-core/axe.min.js"


# Not of the session: modules that import it have one each, and only one may run at a time.
@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium that has no network."""
    path = browser_path()
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        # Its sandbox needs rights that containers, where tests often run as root, do not give.
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Open a file; the page notes in ``faults`` what the console and the network had to say."""
    contexts = []

    def open_file(path, **settings):
        context = chromium.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.on("console", lambda message: page.faults.append(message.text))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        address = path.as_uri()

        def note_request(request):
            if request.url != address and not request.url.startswith("data:"):
                page.faults.append(f"request: {request.url}")

        page.on("request", note_request)
        page.goto(address)
        return page

    yield open_file
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The script of axe-core, which npm gets; skips where it cannot."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm to get axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    (folder / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm did not get axe-core: {error}")
    return (folder / AXE).read_text(encoding="utf-8")
