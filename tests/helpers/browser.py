"""Pages in a real browser, without a network: opened, read and typed at.

Needs Debian's chromium with chromium-driver, and selenium (``pip install '.[browser]'``); modules that import
this are skipped, saying so, where one is missing. Screenshots are kept in build/screenshots, which git
ignores.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

__all__ = [
    "READY",
    "SCREENSHOTS",
    "ActionChains",
    "By",
    "Keys",
    "Reader",
    "Select",
    "WebDriverWait",
    "started",
]

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install '.[browser]'"
)
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if not (CHROMIUM and DRIVER):
    pytest.skip(
        "chromium and chromedriver are not installed: apt install chromium-driver", allow_module_level=True
    )

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
READY = "return document.documentElement.dataset.ready"
PAINTED = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))"


def started(size: str = "1440,1100", logs: tuple[str, ...] = ("browser",)) -> Any:
    """Chromium under its driver, which has no network; ``logs`` are kept."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={size}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    return driver


class Reader:
    """A page that is open, and what can be read in it."""

    def __init__(self, driver: Any, path: Path, address: str = "") -> None:
        self.driver = driver
        driver.get("about:blank")
        driver.get(f"{path.as_uri()}{address}")
        WebDriverWait(driver, 20).until(lambda one: one.execute_script(READY))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def cell(self, key: str) -> Any:
        found = self.one(f'#board [data-key="{key}"]')
        self.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", found)
        self.driver.execute_async_script(PAINTED)  # cells out of view are filled in as they come into it
        return found

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def lit(self, *levels: str) -> set[str]:
        """Keys of what is lit, at one of the levels if some are given."""
        pairs = self.run(
            "return [...document.querySelectorAll('#board [data-key][data-light]')]"
            ".map(cell => [cell.dataset.key, cell.dataset.light])"
        )
        return {key for key, level in pairs if not levels or level in levels}

    def line(self) -> str:
        return self.one("#line").text

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))
