"""train_recsys: the same bits at any number of ranks and after a stop, also with a vocabulary; users' files; predictions; clear errors."""

import json
import re
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    h5py = None

import support
from support import clean_environment, program, ranks


def hashed(i):
    return f"{(i * 2654435761) % 4294967296:08x}"


class RecsysTest(support.SystemTest):
    def command(self, output, *more):
        return program("train_recsys", "--click-samples", 480, "--click-eval-samples", 100, "--click-fields", 3, "--click-ids", 20, "--dim", 4, "--top", "8",
                       *(() if "towers" in more else ("--bottom", "8")), "--epochs", 2, "--global-batch", 48, "--shards", 4, "--threads", 1, "--schedule", "constant", "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def tensors(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))["tensors"]

    def evaluations(self, output):
        lines = [json.loads(line) for line in (self.scratch / output / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in line.items() if k not in ("seconds", "samples_per_second")} for line in lines if line["split"] == "eval"]

    def write_files(self):
        line = "\t".join([str(i % 7) for i in range(13)])
        rows = [f"{i % 2}\t{line}\t" + "\t".join("" if f == 5 else hashed(i % (f + 2)) for f in range(26)) for i in range(96)]
        (self.scratch / "day.txt").write_text("\n".join(rows) + "\n")
        (self.scratch / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + "".join(f"{i % 9},{i * 7 % 31},{i % 10 / 2},{i}\n" for i in range(96)))
        (self.scratch / "table.csv").write_text("price,site,item,click\n" + "".join(f"{i % 5}.5,www.{i % 6}.org,{i % 11},{i % 2}\n" for i in range(96)))

        (self.scratch / "bags.csv").write_text("age,user,genres,click\n" + "".join(f"{i % 5},{i % 9},{'|'.join(str(i * 3 % k) for k in range(2, 2 + i % 4))},{i % 2}\n" for i in range(96)))

    def files(self, dataset, *more):
        return ("--dataset", dataset, "--files", self.scratch / {"criteo": "day.txt", "ratings": "ratings.csv", "csv": "table.csv"}[dataset], *more)


class Recsys(RecsysTest):
    def test_any_number_of_ranks_and_a_stop_change_no_bit(self):
        vocabulary = ("--click-wide", "--vocabulary", 12, "--admit-after", 2, "--evict-after", 4, "--hash-every", 2)
        for name, more in {"dlrm": (), "towers": ("--model", "towers", "--loss", "softmax", "--group-auc", "id0"), "vocabulary": vocabulary}.items():
            with self.subTest(name):
                for count in (1, 3):
                    result = self.succeed(ranks(count, self.command(f"{name}{count}", *more)))
                self.assertEqual(self.tensors(f"{name}1"), self.tensors(f"{name}3"))
                self.assertEqual(self.evaluations(f"{name}1"), self.evaluations(f"{name}3"))
                self.succeed(ranks(3, self.command(f"{name}-sharded", "--shard-tables", "--table-placement", "range", "--hot-rows", 9, *more)))
                self.assertEqual(self.tensors(f"{name}-sharded"), self.tensors(f"{name}1"))
                self.assertIn("the best AUC of these 100 evaluation samples is 0.", result.output)
                self.succeed(ranks(2, self.command(f"{name}-parts", "--max-steps", 7, "--checkpoint-every-steps", 1, *more)))
                self.succeed(ranks(1, self.command(f"{name}-parts", "--resume", "auto", *more)))
                self.assertEqual(self.tensors(f"{name}-parts"), self.tensors(f"{name}1"))
        self.succeed(program("lockstep", "compare", self.scratch / "vocabulary1", self.scratch / "vocabulary-parts"))  # hashes, though checkpoints are at other steps
        self.succeed(ranks(2, program("lockstep", "evaluate", self.scratch / "vocabulary1", "--shards", 4)))
        line = json.loads((self.scratch / "vocabulary1" / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertEqual(line["auc"], self.evaluations("vocabulary1")[-1]["auc"])

    def test_killed_runs_with_increments_and_a_growing_vocabulary(self):
        """A run is killed twice and goes on at other numbers of ranks, with tables elsewhere; checkpoints have changed rows alone."""
        more = ("--click-ids", 900, "--click-wide", "--vocabulary", 400, "--global-batch", 24, "--checkpoint-every-steps", 2, "--keep", 1)
        self.succeed(ranks(1, self.command("whole", *more)))
        parts = self.command("parts", *more, "--full-tables-every", 4, "--table-copy-mb", 0, "--resume", "auto")
        folder = self.scratch / "parts" / "checkpoints"
        for count, where, last in ((2, ["--shard-tables"], 9), (3, [], 25), (1, [], None)):  # all rows: steps 2, 10, 18, ...
            faults = clean_environment(LOCKSTEP_FAULT=f"step.begin:kill:at={last}") if last else clean_environment()
            result = self.run_command(ranks(count, [*parts, *where]), environment=faults)
            self.assertEqual(result.status == 0, last is None, result)
            newest = max(folder.glob("step-*.h5"))
            listed = self.succeed(program("lockstep", "checkpoint", newest)).stdout
            base = re.search(r"increment \d of (step-\d+\.h5): \d+ changed rows", listed)
            self.assertTrue(base, listed)
            self.assertLess(newest.stat().st_size, (folder / base.group(1)).stat().st_size)
        self.assertEqual(sorted(p.name for p in folder.glob("step-*.h5")), [base.group(1), newest.name], "the newest one, and what it needs")
        self.assertEqual(self.tensors("parts"), self.tensors("whole"))
        values = self.succeed(ranks(2, program("lockstep", "evaluate", newest, "--shards", 4))).stdout
        (folder / base.group(1)).rename(self.scratch / base.group(1))
        self.fail_with(program("lockstep", "checkpoint", newest), f"since {base.group(1)}, a file that it needs and that cannot be used")
        self.fail_with(ranks(1, self.command("parts", *more, "--resume", "auto")), "can be used (reasons above); move them away to start anew")
        self.assertIn("auc", values)

    def test_files_of_users_are_trained_and_predicted(self):
        self.write_files()
        for dataset, more in {"criteo": ("--hash-ids", 50), "ratings": ("--model", "towers"), "csv": ("--inputs", "price", "--ids", "site,item", "--label", "click", "--vocabulary", 30)}.items():
            with self.subTest(dataset):
                self.succeed(ranks(2, self.command(dataset, *self.files(dataset, *more))))
                for count in (1, 2):
                    self.succeed(ranks(count, program("lockstep", "predict", self.scratch / dataset, "--output", self.scratch / f"{dataset}{count}.csv")))
                for option, value in (("--hash-ids", 50), ("--vocabulary", 30)):
                    if option in more:
                        self.fail_with(program("lockstep", "predict", self.scratch / dataset, "--output", self.scratch / "other.csv", option, 9), f"{option} is 9, and the model was trained with {option} {value}")
                self.assertEqual((self.scratch / f"{dataset}1.csv").read_bytes(), (self.scratch / f"{dataset}2.csv").read_bytes())
                rows = (self.scratch / f"{dataset}1.csv").read_text().splitlines()
                self.assertEqual(rows[0], "index,probability")
                self.assertEqual(len(rows), 97)
                self.assertTrue(all(0 < float(row.split(",")[1]) < 1 for row in rows[1:]))
        self.fail_with(program("lockstep", "predict", self.scratch / "csv", "--ids", "item,site", "--output", self.scratch / "swapped.csv"),
                       "--ids has 'item' where the model was trained with 'site': expected the order site, item")

    def test_a_trace_shows_messages_of_tables(self):
        """Ids of the next step leave before this step's backward pass; rows come in and gradients leave with their bytes."""
        file = self.scratch / "trace.json"
        self.succeed(ranks(2, self.command("traced", "--shard-tables", "--max-steps", 8, "--trace", file, "--trace-steps", 3)))
        events = json.loads(file.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        for rank in range(2):
            tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == rank}
            mine = [e | {"track": tracks[e["tid"]]} for e in spans if e["pid"] == rank]
            steps = [e for e in mine if e["track"] == "steps"]
            self.assertEqual(len(steps), 3)
            for name, track in {"ids of the next lookups": "ids of tables", "rows of tables": "rows of tables", "row gradients": "gradients of rows"}.items():
                found = [e for e in mine if e["name"] == name]
                self.assertGreaterEqual(len(found), 3, name)
                self.assertEqual({e["track"] for e in found}, {track})
                self.assertTrue(all(e["args"]["bytes"] > 0 for e in found), found)
            for step in steps:
                inside = [e for e in mine if step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
                backward = min(e["ts"] for e in inside if e["name"].startswith("grad "))
                self.assertLess(min(e["ts"] for e in inside if e["track"] == "ids of tables"), backward)
                self.assertGreater(min(e["ts"] for e in inside if e["track"] == "gradients of rows"), backward)

    def test_memory_that_one_rank_cannot_have_is_one_error(self):
        """Rows of sharded tables, rows of tables that each rank has, marks of changed rows, replicas of hot rows (before step 9)."""
        for count, at, more in ((2, 0, ("--shard-tables",)), (3, 0, ("--allreduce", "messages")), (3, 1, ("--shard-tables", "--full-tables-every", 2)),
                                (3, 2, ("--shard-tables", "--hot-rows", 30))):
            remedy = "--hot-rows" if "--hot-rows" in more else "--shard-tables"
            with self.subTest(count=count, more=more):
                faults = clean_environment(LOCKSTEP_FAULT=f"tables.allocate:corrupt:rank=1:at={at}")
                result = self.run_command(ranks(count, self.command("none", *more)), limit=support.SOON, environment=faults)
                self.assertNotEqual(result.status, 0, result)
                found = re.findall(r"rank 1 on host \S+: \[tables\] (\d+) bytes \(1 MiB\) for .* could not be allocated; each rank needs .*" + remedy, result.output)
                self.assertEqual(len(found), 1, result)
                self.assertGreater(int(found[0]), 0)
                self.expect_no_process()

    def test_a_resume_needs_the_same_samples(self):
        self.succeed(ranks(2, self.command("drawn", "--max-steps", 4)))
        for option, before, now in (("--click-seed", 1, 2), ("--click-exponent", 1.05, 1.2), ("--click-latent", 4, 3), ("--click-ids", 20, 19), ("--click-samples", 480, 528)):
            with self.subTest(option):
                self.fail_with(ranks(2, self.command("drawn", "--resume", "auto", option, now)), f"{option} was {before}, this run has {now}: the samples are others; pass {option} {before} as before")
        self.succeed(ranks(1, self.command("drawn", "--resume", "auto", "--click-eval-samples", 90)))

    def test_negatives_from_all_samples_change_no_bit_with_the_ranks(self):
        towers = ("--model", "towers", "--loss", "softmax", "--user-fields", 2, "--negatives", 3)
        for count in (1, 3):
            self.succeed(ranks(count, self.command(f"drawn{count}", *towers)))
        self.assertEqual(self.tensors("drawn1"), self.tensors("drawn3"))
        self.succeed(ranks(1, self.command("uniform", *towers, "--negative-exponent", 0)))
        self.assertNotEqual(self.tensors("drawn1"), self.tensors("uniform"))
        self.succeed(ranks(2, program("lockstep", "evaluate", self.scratch / "drawn1", "--shards", 4)))
        line = json.loads((self.scratch / "drawn1" / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertEqual([line["auc"], line["log_loss"]], [self.evaluations("drawn1")[-1][name] for name in ("auc", "log_loss")])

    def test_two_towers_retrieve_the_items_of_the_samples(self):
        self.write_files()
        self.succeed(ranks(2, self.command("towers", *self.files("ratings", "--model", "towers", "--loss", "softmax"))))
        for count in (1, 3):
            self.succeed(ranks(count, program("lockstep", "predict", self.scratch / "towers", "--top-k", 4, "--output", self.scratch / f"top{count}.csv")))
        self.assertEqual((self.scratch / "top1.csv").read_bytes(), (self.scratch / "top3.csv").read_bytes())
        header, *rows = [line.split(",") for line in (self.scratch / "top1.csv").read_text().splitlines()]
        self.assertEqual(header, ["index", "item_0", "item_1", "item_2", "item_3", "score_0", "score_1", "score_2", "score_3"])
        self.assertEqual(len(rows), 96)
        for row in rows:
            items, scores = [int(word) for word in row[1:5]], [float(word) for word in row[5:]]
            self.assertEqual(len(set(items)), 4)
            self.assertTrue(set(items) <= set(range(31)), items)
            self.assertEqual(scores, sorted(scores, reverse=True))

    def test_mistakes_are_named(self):
        self.write_files()
        offered = self.succeed(program("train_recsys", "--help")).stdout
        for option in ("series", "symmetry", "targets", "classes", "sample-axis", "noise", "label-smoothing", "missing", "ignore-index", "spatial-axes", "vectors", "augment"):
            self.assertNotIn(f"  --{option} ", offered)
        ids = ("--inputs", "price", "--ids", "item,site", "--label", "click")
        for more, words in ((self.files("criteo"), "--hash-ids"), (("--missing", "skip"), "unknown option --missing"),
                            (self.files("csv", *ids), "('site'): the id is the text 'www.0.org'"),
                            (self.files("csv", *ids), "--hash-ids N maps any id to one of N rows, and --vocabulary N gives rows"),
                            (("--eval-fraction", 0.5), "--eval-fraction is 0.5, which --dataset clicks does not read; it is for criteo, ratings, csv"), (self.files("csv", "--inputs", "price", "--label", "click"), "--ids is missing"),
                            (self.files("csv", "--inputs", "price", "--ids", "site,item", "--label", "price", "--hash-ids", 9), "the label is"),
                            (self.files("ratings", "--model", "dlrm", "--group-auc", "user"), "--group-auc is 'user', expected one of the fields of ids: userId, movieId"),
                            (("--dataset", "csv", "--files", self.scratch / "bags.csv", "--inputs", "age", "--ids", "user,genres", "--label", "click", "--bags", "genres:2"), "a bag of more than 2 ids"),
                            (self.files("csv", "--inputs", "price", "--ids", "site", "--label", "click", "--bags", "item", "--hash-ids", 9), "--bags names the field 'item'"),
                            (("--dataset", "csv", "--files", self.scratch / "bags.csv", "--inputs", "age", "--ids", "user,genres", "--label", "click", "--bags", "genres:offsets=o"), "expected it with hdf5"),
                            (("--dataset", "csv", "--files", self.scratch / "bags.csv", "--inputs", "age", "--ids", "user,genres", "--label", "click", "--bags", "genres:counts=n"), "--bags has counts=n for the field 'genres' with the data set csv, expected it with hdf5, arrays or records"),
                            (("--freeze", "table*"), "--freeze: the pattern 'table*' matches 'table.weight', a sparse table"),
                            (("--negatives", 2), "--negatives 2 without --loss softmax"),
                            (("--negative-exponent", 0.5), "--negative-exponent is 0.5 without --negatives"),
                            (("--model", "deepfm"), "--bottom is 8, which --model deepfm does not read; it is for dlrm"),
                            (("--temperature", 0.2), "--temperature is 0.2, which --model dlrm does not read; it is for towers"),
                            (("--dataset", "records", "--data-dir", self.scratch), "no train.index"),
                            (("--click-wide",), "--click-wide makes ids of 63 bits"), (("--loss", "softmax"), "expected --model towers"), (("--top", "8,x"), "--top has 'x'")):
            with self.subTest(more):
                self.fail_with(ranks(2, self.command("wrong", *more)), words)


@unittest.skipIf(h5py is None, "h5py or NumPy is not installed (scripts/setup.sh --tests)")
class Sources(RecsysTest):
    def test_the_same_bits_from_text_arrays_and_records(self):
        """Bags, too, with a vocabulary."""
        self.write_files()
        rows = [line.split(",") for line in (self.scratch / "bags.csv").read_text().splitlines()[1:]]
        genres = np.full((96, 3), -1, np.int64)
        for i, (_, _, bag, _) in enumerate(rows):
            for j, one in enumerate(bag.split("|") if bag else []):
                genres[i, j] = int(one)
        count = (genres >= 0).sum(1).astype(np.int32)
        arrays = {"age": np.array([float(r[0]) for r in rows]), "user": np.array([int(r[1]) for r in rows]), "click": np.array([int(r[3]) for r in rows], np.uint8)}
        for name, array in (arrays | {"genres": genres.clip(0), "n": count}).items():
            np.save(self.scratch / f"{name}.npy", array)
        with h5py.File(self.scratch / "log.h5", "w") as file:
            for name, array in (arrays | {"genres": genres}).items():
                file[name] = array
            file["flat"], file["starts"] = genres[genres >= 0], np.concatenate([[0], np.cumsum(count)])
            lists = file.create_dataset("lists", (96,), h5py.vlen_dtype(np.int32))
            for i in range(96):
                lists[i] = genres[i][: count[i]]
        packed = self.succeed(program("lockstep", "pack", "--dataset", "csv", "--files", self.scratch / "bags.csv", "--inputs", "age", "--ids", "user,genres", "--label", "click",
                             "--bags", "genres:3", "--seed", 1, "--output", self.scratch / "packed"))
        sources = {"csv": ("csv", "--files", self.scratch / "bags.csv", "--inputs", "age", "--ids", "user,genres", "--label", "click", "--bags", "genres:sum:3"),
                   "arrays": ("arrays", "--data-dir", self.scratch, "--inputs", "age.npy", "--ids", "user.npy,genres=genres.npy", "--label", "click.npy", "--bags", "genres:sum:counts=n.npy"),
                   "hdf5": ("hdf5", "--files", self.scratch / "log.h5", "--inputs", "age", "--ids", "user,genres", "--label", "click", "--bags", "genres:sum"),
                   "offsets": ("hdf5", "--files", self.scratch / "log.h5", "--inputs", "age", "--ids", "user,genres=flat", "--label", "click", "--bags", "genres:sum:3:offsets=starts"),
                   "lists": ("hdf5", "--files", self.scratch / "log.h5", "--inputs", "age", "--ids", "user,genres=lists", "--label", "click", "--bags", "genres:sum:3"),
                   "records": ("records", "--data-dir", self.scratch / "packed", "--bags", "genres:sum")}
        for rule in (("--hash-ids", 20), ("--vocabulary", 12)):
            for name, more in sources.items():
                self.succeed(ranks(2, self.command(name, *rule, "--dataset", *more)))
                self.assertEqual(self.tensors(name), self.tensors("csv"), (name, rule))
        self.succeed(program("lockstep", "predict", self.scratch / "records", "--files", self.scratch / "packed" / "eval.index", "--output", self.scratch / "p.csv"))
        records = int(re.search(r"eval.index: (\d+) records", packed.output).group(1))
        self.assertEqual(len((self.scratch / "p.csv").read_text().splitlines()), 1 + records)


if __name__ == "__main__":
    support.main()
