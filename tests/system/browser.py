"""Headless Chromium over its debugging pipe (--remote-debugging-pipe): JSON messages that end with a zero byte."""

import json
import os
import shutil
import subprocess
import time


class Browser:
    """One page; as a context manager it ends the browser. What the page's script throws is in `errors`."""

    def __init__(self, folder, limit=120, width=1200, height=900):
        self.limit, self.errors, self._id, self._rest = limit, [], 0, b""
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def place_pipes():  # the browser reads from 3 and writes to 4
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        os.set_blocking(self._read, False)
        self._process = subprocess.Popen(  # as root it has no sandbox
            [program(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", f"--window-size={width},{height}",
             "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=place_pipes, close_fds=False)
        os.close(to_read)
        os.close(to_write)
        self._session = None
        target = self.wait(lambda: next((t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"), None))
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)  # it ends by this
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _message(self, deadline):
        while b"\0" not in self._rest:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise AssertionError("the browser does not answer")
            try:
                self._rest += os.read(self._read, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        """The result of a method of Chrome's DevTools protocol."""
        self._id += 1
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps({"id": self._id, "method": method, "params": parameters, **session}).encode() + b"\0")
        deadline = time.monotonic() + self.limit
        while True:
            message = self._message(deadline)
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])
            if message.get("id") == self._id:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]

    def wait(self, condition):
        deadline = time.monotonic() + self.limit
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError("not seen in the browser")
            time.sleep(0.05)
        return found

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait(lambda: self.value(f"document.readyState === 'complete' && location.href !== 'about:blank'"))

    def value(self, expression):
        """What an expression gives in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get("value")


def program():
    """Its path, or None; scripts/setup.sh --tests installs it."""
    return shutil.which("chromium")
