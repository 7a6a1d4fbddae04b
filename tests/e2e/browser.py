"""A headless Chromium, driven through its DevTools pipe: open a page, evaluate, move the mouse, click, type, take a picture.

Only the standard library: messages are JSON, each ended by a zero byte, on file descriptors 3 and 4 of the browser.
"""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
SILENCE_S = 300
LEFT = ("Inspected target navigated", "Execution context was destroyed", "Cannot find default execution context")


class PageLeft(RuntimeError):
    """The page went to another address while it was asked."""


def find():
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Page:
    def __init__(self, to_browser, from_browser):
        self._out, self._in, self._buffer, self._last, self._session = to_browser, from_browser, b"", 0, None
        self.problems = []  # exceptions and console errors of the page
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.requests = []

    def call(self, method, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    left = any(words in answer["error"].get("message", "") for words in LEFT)
                    raise (PageLeft if left else RuntimeError)(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], SILENCE_S)[0]:
                raise RuntimeError(f"the browser said nothing for {SILENCE_S} s")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        event = json.loads(message)
        self._note(event.get("method"), event.get("params", {}))
        return event

    def _note(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"].get("exception", {}).get("description", str(parameters)))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(self, url, width=1400, height=1000):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        for address in ("about:blank", url):  # the same page with another fragment would not load anew
            self._loaded = False
            self.call("Page.navigate", url=address)
            while not self._loaded:
                self._read()
        self.settle()

    def settle(self):
        """Until what was asked for is drawn: two frames, and the promises before them."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression, tries=10):
        """The value of the expression; in the new page, when a click opens another one meanwhile."""
        try:
            answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        except PageLeft:
            if tries == 1:
                raise
            return self.evaluate(expression, tries - 1)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def middle(self, selector):
        """The middle of the first element that fits, scrolled into sight."""
        box = self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null; "
                            "e.scrollIntoView({ block: 'center', inline: 'center' }); const b = e.getBoundingClientRect(); "
                            "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        if not box:
            raise RuntimeError(f"no element {selector}")
        return box

    def hover(self, selector):
        x, y = self.middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, selector, modifiers=0):
        x, y = self.middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            with contextlib.suppress(PageLeft):  # the click has opened another page before the browser answered
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, modifiers=modifiers)
        self.settle()

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.settle()

    def texts(self, selector):
        return self.evaluate(f"Array.from(document.querySelectorAll({json.dumps(selector)}), (e) => e.textContent)")

    def attributes(self, selector, name):
        return self.evaluate(f"Array.from(document.querySelectorAll({json.dumps(selector)}), (e) => e.getAttribute({json.dumps(name)}))")

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def page():
    program = find()
    if not program:
        raise SystemExit("no headless browser here; install the Debian package chromium-headless-shell (or chromium)")
    to_browser, from_browser = os.pipe(), os.pipe()

    def pipes_at_3_and_4():
        near, far = os.dup(to_browser[0]), os.dup(from_browser[1])
        os.dup2(near, 3)
        os.dup2(far, 4)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        browser = subprocess.Popen([program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                                    f"--user-data-dir={scratch}/profile"], preexec_fn=pipes_at_3_and_4, close_fds=False,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            yield Page(to_browser[1], from_browser[0])
        finally:
            os.close(to_browser[1])
            os.close(from_browser[0])
            browser.terminate()
            browser.wait(timeout=30)
