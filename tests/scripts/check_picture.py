"""The picture of `lockstep inspect --svg`: check_picture.py LOCKSTEP CLASS. Each step of the plan is in it once, folded modules included; as SVG it is
well-formed and has a title and a description. Drawn needs Graphviz."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import skips  # noqa: E402

LOCKSTEP = sys.argv.pop(1)
SVG = "{http://www.w3.org/2000/svg}"


def inspect(*words, **options):
    return subprocess.run([LOCKSTEP, "inspect", *map(str, words)], capture_output=True, text=True, **options)


def numbers(texts):
    """Those of the steps, which stand alone in their cells."""
    bare = [text.replace("&#160;", "").replace("\xa0", "") for text in texts]
    found = [int(n) for text in bare if re.fullmatch(r"\d+(, \d+)*", text) for n in text.split(", ")]
    for match in filter(None, (re.fullmatch(r"(\d+) to (\d+) by (-?\d+)", text) for text in bare)):
        first, last, step = map(int, match.groups())
        found += range(first, last + (1 if step > 0 else -1), step)
    return sorted(found)


class PictureTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def draw(self, suffix, *words):
        file = os.path.join(self.folder.name, "plan" + suffix)
        done = inspect(*words, "--svg", file)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, file), done.stderr)
        with open(file) as text:
            return text.read()

    def steps(self, *words):
        done = inspect(*words, "--plan", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["plan"]["steps"]


class Text(PictureTest):
    def test_every_step_is_in_the_text_once(self):
        for words in (["toy", "--detail", "steps"], ["toy", "--mode", "eval"], ["resnet20", "--batch", 4], ["resnet20", "--batch", 4, "--detail", "steps"],
                      ["vit_mini_cifar", "--precision", "bf16"]):
            count = len(self.steps(*[w for w in words if w not in ("--detail", "steps")]))
            text = self.draw(".gv", *words)
            self.assertEqual(numbers(re.findall(r"<FONT COLOR=\"white\">(\d[^<]*)</FONT>", text)), list(range(1, count + 1)), words)

    def test_equal_modules_are_folded(self):
        text = self.draw(".gv", "vit_mini_cifar")
        folded = re.findall(r"encoder.layers.encoder_layer_(\d)</B>, (\d+) times, to encoder.layers.encoder_layer_(\d);", text)
        self.assertEqual(len(folded), 2, folded)  # forward and backward
        for first, count, last in folded:
            self.assertGreaterEqual(int(count), 3)
            self.assertEqual(int(last) - int(first) + 1, int(count))
        self.assertFalse(" times, " in self.draw(".gv", "vit_mini_cifar", "--detail", "steps"))

    def test_what_is_computed_again_is_marked(self):
        again = sum(s["path"].startswith("again ") for s in self.steps("resnet20"))
        self.assertGreater(again, 0)
        self.assertTrue(f"{again} values computed again" in self.draw(".gv", "resnet20"))

    def test_without_graphviz_the_message_names_the_package(self):
        done = inspect("toy", "--svg", os.path.join(self.folder.name, "plan.svg"), env={**os.environ, "PATH": self.folder.name})
        self.assertEqual(done.returncode, 1)
        self.assertIn("install the package graphviz", done.stderr)
        self.assertEqual(os.listdir(self.folder.name), [])


class Drawn(PictureTest):
    def test_as_svg_it_is_whole_and_named(self):
        if shutil.which("dot") is None:
            self.skipTest("Graphviz is not installed: the picture was not drawn (scripts/setup.sh --tests)")
        root = xml.fromstring(self.draw(".svg", "mnist_convnet", "--batch", 8))
        title, description = root.find(SVG + "title"), root.find(SVG + "desc")
        self.assertTrue(title.text.startswith("Plan of mnist_convnet, train, batch 8, f32: "), title.text)
        self.assertIn("steps of backward", description.text)
        self.assertEqual((root.get("aria-labelledby"), root.get("aria-describedby")), (title.get("id"), description.get("id")))
        texts = [t.text for t in root.iter(SVG + "text") if t.get("fill") == "white"]
        self.assertEqual(numbers(texts), list(range(1, len(self.steps("mnist_convnet", "--batch", 8)) + 1)))


if __name__ == "__main__":
    skips.main()
