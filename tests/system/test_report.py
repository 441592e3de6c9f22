"""What a run looks like from outside: the files of --logger, the page of `lockstep report` and the server of `lockstep watch`."""

import csv
import http.client
import importlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

import browser
import support
from support import SOURCE, SystemTest, checkpoints, metrics, program, ranks

try:
    import google.protobuf as protobuf
except ImportError:
    protobuf = None

MLP = ["--model", "mlp", "--dataset", "digits", "--limit-train", 96, "--limit-eval", 32, "--global-batch", 32, "--epochs", 2, "--threads", 1,
       "--loaders", 0, "--log-every", 1, "--checkpoint-every", 0]


def crc32c(data):
    """Bit by bit, from the polynomial: nothing in common with the program's table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class ReportTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"

    def train(self, size, *options):
        return self.succeed(ranks(size, program("train_mnist", *MLP, "--output", self.output, *options)))

    def train_twice(self, *first):
        """A run of two ranks that is stopped and resumed, with a profile."""
        self.train(2, *first, "--max-steps", 3, "--checkpoint-every-steps", 3)
        self.train(2, "--profile", "--resume", "auto")  # of the three steps the first two are cold

    def report(self):
        said = self.succeed(program("lockstep", "report", self.output)).stdout.strip()
        self.assertEqual(said, str(self.output / "report.html"))
        return self.output / "report.html"

    def browser(self):
        if browser.program() is None:
            self.skipTest("chromium is not installed: the script of the page was not run (scripts/setup.sh --tests)")
        return browser.Browser(self.scratch / "browser")


class Records(ReportTest):
    """One run of two ranks that is stopped and resumed writes all kinds of files."""

    def schema(self):
        """The module that protoc generates from the published schema."""
        if shutil.which("protoc") is None or protobuf is None:
            self.skipTest("protoc or Python's google.protobuf is not installed: event files were not read back (scripts/setup.sh --tests)")
        subprocess.run(["protoc", f"--proto_path={SOURCE / 'tests' / 'system'}", f"--python_out={self.scratch}", "tensorboard.proto"], check=True)
        sys.path.insert(0, str(self.scratch))
        self.addCleanup(sys.path.remove, str(self.scratch))
        return importlib.import_module("tensorboard_pb2")

    def events(self, file, schema):
        data, events = file.read_bytes(), []
        while data:
            length, = struct.unpack("<Q", data[:8])
            self.assertEqual(struct.unpack("<I", data[8:12])[0], masked(data[:8]))
            body = data[12:12 + length]
            self.assertEqual(struct.unpack("<I", data[12 + length:16 + length])[0], masked(body))
            event = schema.Event.FromString(body)
            known = schema.Event.FromString(body)
            known.DiscardUnknownFields()
            self.assertEqual(known.ByteSize(), event.ByteSize(), "a field that the schema does not have")
            events.append(event)
            data = data[16 + length:]
        return events

    def test_tensorboard_csv_and_prometheus_have_the_metrics(self):
        options = ["--logger", "tensorboard,csv,prometheus", "--checkpoint-every-steps", 2]
        self.train(2, *options, "--max-steps", 4)
        checkpoints(self.output)[-1].unlink()  # what came after update 2 is trained again
        self.train(2, *options, "--resume", "auto")

        with open(self.output / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        lines = [json.loads(line) for line in (self.output / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([(int(r["step"]), r["split"], float(r["loss"])) for r in rows], [(l["step"], l["split"], l["loss"]) for l in lines])
        self.assertEqual([float(r["compute_seconds"]) for r in rows if r["split"] == "train"], [l["compute_seconds"] for l in lines if l["split"] == "train"])

        values = dict(re.findall(r"^(lockstep_\w+\{[^}]*\}) (\S+)$", (self.output / "metrics.prom").read_text(), re.M))
        run = json.loads((self.output / "run.json").read_text())["run"]
        self.assertEqual(values[f'lockstep_updates_total{{run="{run}"}}'], "6")
        self.assertEqual(float(values[f'lockstep_loss{{run="{run}",split="eval"}}']), [l["loss"] for l in lines if l["split"] == "eval"][-1])

        schema = self.schema()
        files = sorted((self.output / "tensorboard").glob("events.out.tfevents.*"), key=lambda f: f.stat().st_mtime_ns)
        self.assertEqual(len(files), 2)
        first, second = (self.events(file, schema) for file in files)
        self.assertEqual([events[0].file_version for events in (first, second)], ["brain.Event:2"] * 2)
        start = second[1]
        self.assertEqual((start.step, start.session_log.status), (3, schema.SessionLog.START))
        # As TensorBoard reads: a start drops what is known of its step and of later ones.
        scalars, kept = {}, [e for e in first if e.step < 3] + second[2:]
        for event in kept:
            for value in event.summary.value:
                if value.WhichOneof("value") == "simple_value":
                    scalars.setdefault(value.tag, []).append((event.step, value.simple_value))
        for split in ("train", "eval"):
            exact = [(step, struct.unpack("f", struct.pack("f", float(loss)))[0]) for step, loss in metrics(self.output, split)]
            self.assertEqual(scalars[f"{split}/loss"], exact)
        self.assertIn("train/lr", scalars)
        self.assertIn("eval/accuracy", scalars)
        histograms = [(e.step, v.tag, v.histo) for e in kept for v in e.summary.value if v.WhichOneof("value") == "histo"]
        self.assertEqual({step for step, _, _ in histograms}, {3, 6})
        for _, tag, histogram in histograms:
            self.assertTrue(tag.startswith("weights/"), tag)
            self.assertEqual(sum(histogram.bucket), histogram.num)
            self.assertEqual(len(histogram.bucket), len(histogram.bucket_limit))
            self.assertEqual(histogram.bucket_limit[-1], histogram.max)
            self.assertEqual(list(histogram.bucket_limit), sorted(histogram.bucket_limit))
        texts = [v for e in first for v in e.summary.value if v.WhichOneof("value") == "tensor"]
        self.assertEqual([(t.tag, t.metadata.plugin_data.plugin_name, t.tensor.dtype) for t in texts], [("options", "text", schema.DT_STRING)])
        self.assertIn(b"| global-batch | 32 |", texts[0].tensor.string_val[0])

    def test_other_names_are_refused_and_none_writes_none(self):
        self.fail_with(ranks(2, program("train_mnist", *MLP, "--output", self.output, "--logger", "csv,tensorbord")),
                       "--logger is 'csv,tensorbord', expected none, or some of dllogger, tensorboard, csv, prometheus")
        self.train(1)
        for name in ("tensorboard", "metrics.csv", "metrics.prom", "dllogger.json"):
            self.assertFalse((self.output / name).exists(), name)


class Page(ReportTest):
    def test_the_document_follows_its_schema_and_the_page_loads_nothing(self):
        import jsonschema
        self.train_twice("--trace", self.scratch / "trace.json", "--trace-steps", 1)
        document = json.loads(self.succeed(program("lockstep", "report", self.output, "--json", "--trace", self.scratch / "trace.json")).stdout)
        jsonschema.validate(document, json.loads((SOURCE / "tools" / "report" / "page" / "schema.json").read_text()))
        run = document["runs"][0]
        self.assertEqual(run["series"]["train"]["columns"]["step"], list(range(1, 7)))
        self.assertEqual(run["series"]["train"]["columns"]["loss"], [float(loss) for _, loss in metrics(self.output)])
        self.assertEqual([e["kind"] for e in run["events"] if e["kind"] == "resume"], ["resume"])
        self.assertEqual([r["rank"] for r in run["ranks"]], [0, 1])
        self.assertTrue(all(r["memory_mib"] > 0 for r in run["ranks"]))
        self.assertEqual(run["options"]["global-batch"], 32)
        self.assertIn("linear", [c["name"] for c in run["profile"]["classes"]])
        self.assertEqual([t["rank"] for t in run["trace"]], [0, 1])
        for outside in re.findall(r'(?:src|href)="([^"#]+)"', self.report().read_text().split("<script>")[0]):
            self.assertTrue(outside.startswith("data:"), outside)

    def test_mistakes_are_named(self):
        self.fail_with(program("lockstep", "report", self.output, self.output), "2 runs without --output, expected --output FILE.html", status=2)
        self.fail_with(program("lockstep", "report", self.output, "--json", "--output", "r.json"), "--json with --output", status=2)
        self.fail_with(program("lockstep", "reprot"), "there is no command 'reprot'; is it 'report'?", status=2)
        self.fail_with(program("lockstep", "report", self.scratch), "expected the folder of a run", status=1)


class PageShown(ReportTest):
    def test_a_browser_shows_all_sections(self):
        with self.browser() as browser:
            self.train_twice()
            browser.open(f"file://{self.report()}")
            shown = browser.value("[...document.querySelectorAll('main > section:not([hidden])')].map((s) => s.id)")
            self.assertEqual(shown, ["runs", "learning", "speed", "work", "ranks", "events", "options"])
            self.assertGreaterEqual(browser.value("document.querySelectorAll('.uplot').length"), 4)
            self.assertIn("resumed ", browser.value("document.querySelector('#events').textContent"))
            self.assertEqual(browser.errors, [])


class Served(ReportTest):
    """With a server of `lockstep watch` over a run of which there is one line."""

    def ask(self, port, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def append(self, step):
        with open(self.output / "metrics.jsonl", "a") as file:
            file.write(f'{{"step":{step},"epoch":1,"split":"train","loss":2.5,"lr":0.1,"samples_per_second":9,"seconds":1}}\n')

    def watch(self):
        """The process, and the port and the token of the address that it prints."""
        (self.output / "logs").mkdir(parents=True)
        self.append(1)
        server = self.start(program("lockstep", "watch", self.output))
        self.addCleanup(self.end, server)
        url = server.stdout.readline().strip()
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", url).groups()
        return server, int(port), token

    def end(self, server):
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
            self.assertEqual(self.finish(server).status, -signal.SIGINT)


class WatchShown(Served):
    def test_an_open_page_shows_what_the_run_writes_and_that_the_server_has_ended(self):
        with self.browser() as browser:
            server, port, token = self.watch()
            browser.open(f"http://127.0.0.1:{port}/{token}/")
            rows = "document.querySelector('#runs tbody').textContent"
            live = "document.getElementById('live').textContent"
            first = browser.value(rows)
            self.append(777)
            browser.wait(lambda: "777" in browser.value(rows))
            self.assertNotIn("777", first)
            self.assertEqual(browser.value(live), "")
            self.end(server)
            browser.wait(lambda: "lockstep watch does not answer" in browser.value(live))
            self.assertEqual(browser.errors, [])


class Watch(Served):
    def test_it_shows_a_run_to_those_with_the_token_alone(self):
        server, port, token = self.watch()
        status, headers, page = self.ask(port, f"/{token}/")
        self.assertEqual(status, 200)
        self.assertIn("connect-src 'self'", headers["Content-Security-Policy"])
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        self.assertIn('"live":true', page)
        status, headers, text = self.ask(port, f"/{token}/data.json")
        self.assertEqual(json.loads(text)["runs"][0]["last_step"], 1)
        self.assertEqual(self.ask(port, f"/{token}/data.json", If_None_Match=headers["ETag"])[0], 304)
        self.append(2)
        status, _, text = self.ask(port, f"/{token}/data.json", If_None_Match=headers["ETag"])
        self.assertEqual((status, json.loads(text)["runs"][0]["last_step"]), (200, 2))
        self.assertEqual(self.ask(port, f"/{token}/data.json", method="HEAD")[2], "")
        for path, expected in [("/", 403), ("/data.json", 403), (f"/{token[:-1]}/", 403), (f"/{token}0/", 403), (f"/{token}/../etc/passwd", 404)]:
            self.assertEqual(self.ask(port, path)[0], expected, path)
        self.assertEqual(self.ask(port, f"/{token}/", Host="example.org")[0], 403)
        self.assertEqual(self.ask(port, f"/{token}/", Host="localhost:8000")[0], 200)
        self.assertEqual(self.ask(port, f"/{token}/", method="POST")[0], 405)
        taken = self.run_command(program("lockstep", "watch", "--port", port, self.output))
        self.assertEqual(taken.status, 1, taken)
        self.assertIn(f"cannot listen at port {port} of 127.0.0.1, expected a free --port", taken.stderr)


class Accessible(Served):
    """What axe-core finds in the pages, in light and in dark: https://github.com/dequelabs/axe-core."""

    def axe(self):
        files = [os.environ.get("LOCKSTEP_AXE", "")] + [f"{folder}/axe-core/axe.min.js" for folder in (
            "/usr/local/lib/node_modules", "/usr/lib/node_modules", "/usr/share/nodejs", SOURCE / "node_modules")]
        for file in files:
            if os.path.isfile(file):
                with open(file) as script:
                    return script.read()
        return self.skipTest("axe-core is not installed: the pages were not checked (npm install --global axe-core, or LOCKSTEP_AXE=axe.min.js)")

    def examine(self, address, axe):
        with self.browser() as browser:
            for scheme in ("light", "dark"):
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                browser.open(address)
                browser.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
                browser.value(axe)
                found = json.loads(browser.value("""axe.run(document).then((r) => JSON.stringify({passes: r.passes.length,
                    violations: r.violations.map((v) => [v.impact, v.id, v.help, v.nodes.map((n) => n.html.slice(0, 200))])}))"""))
                self.assertEqual(found["violations"], [], f"{address} in {scheme}")
                self.assertGreater(found["passes"], 20, f"{address} in {scheme}")

    def test_the_pages_have_nothing_that_axe_finds(self):
        axe = self.axe()
        runs = [self.scratch / "a", self.scratch / "b"]
        for rate, self.output in zip((0.01, 0.02), runs):
            options = ["--lr", rate, "--checkpoint-every-steps", 2, "--profile"]
            self.train(2, *options, "--max-steps", 4)
            self.train(2, *options, "--resume", "auto")
        page = self.scratch / "both.html"
        self.succeed(program("lockstep", "report", *runs, "--output", page))
        self.examine(f"file://{page}", axe)
        self.output = self.scratch / "run"
        server, port, token = self.watch()
        self.examine(f"http://127.0.0.1:{port}/{token}/", axe)
        self.end(server)


if __name__ == "__main__":
    support.main()
