// The parts of a session, each by itself; what they do together is tested by tests/system, test_resume and
// test_callbacks.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/datasets/catalogue.h"
#include "lockstep/checkpoint/directory.h"
#include "lockstep/train/run/checkpoints.h"
#include "lockstep/train/run/course.h"
#include "lockstep/train/run/resume.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/run/run_metadata.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using namespace train;

Options parts_options(const fs::path& output) {
  Options options{.dataset = {.name = "digits", .limit_train = 100, .limit_eval = 32}, .epochs = 3};
  options.global_batch = 40;
  options.batch_size = 0;
  options.threads = 1;
  options.loaders = 0;
  options.output = output.string();
  options.trainer.parallel.overlap = ParallelOptions::Overlap::Steps;  // no thread beside each rank
  options.quiet = true;
  return options;
}

// The contents of the loaders' batches: images as floats.
std::vector<data::Field> float_fields(const RunFacts& facts) {
  std::vector<data::Field> fields = facts.data.train->fields();
  for (data::Field& f : fields) {
    if (f.name == "image") f.dtype = DType::F32;
  }
  return fields;
}

// The parts that a session makes of its options, in its order.
struct SessionParts {
  explicit SessionParts(const Options& options)
      : facts(agree_on_run(world(), options, "test_session_parts", R"({"depth": 3})",
                           {.catalogue = datasets::catalogue()})),
        files(world(), {.output = options.output, .quiet = true}),
        network(models::build_model("mnist_mlp", facts.data.classes(), facts.data.image_shape())),
        trainer(world(), *network, models::classify(*network), float_fields(facts),
                {.global_batch = facts.global_batch(), .seed = options.seed}),
        course(facts, trainer),
        checkpoints(world(), heartbeat, trainer, files, {.keep = {.last = 3}}) {}

  void begin(const std::string& from) {
    resumed = Resumption(facts, files, trainer, course, record).resume(from);
    if (!world().is_root()) return;
    files.open(files.folder().held(), resumed);
    files.folder().begin(files.run());
  }
  void train_one_step() {
    data::Batch batch = course.training().next();
    trainer.step(batch, course.rate());
    course.training().recycle(std::move(batch));
  }
  std::string text() { return metadata(facts, trainer, course, record, files.run()).dump(); }

  RunFacts facts;
  RunFiles files;
  Heartbeat heartbeat;
  RunRecord record;
  std::unique_ptr<models::Classifier> network;
  Trainer trainer;
  Course course;
  Checkpoints checkpoints;
  std::optional<std::int64_t> resumed;
};

TEST(Course, KnowsWhereTheRunStandsAndWhenItIsDone) {
  const SharedDirectory shared;
  SessionParts parts(parts_options(shared.path() / "run"));
  Course& course = parts.course;
  EXPECT_EQ(course.steps_per_epoch(), 3) << "40, 40 and 20 samples";
  EXPECT_EQ(course.total_steps(), 9);
  EXPECT_EQ(course.schedule_epochs(), 3);
  EXPECT_NO_THROW(course.check_last_batch(parts.trainer));
  EXPECT_EQ(course.epochs_done(), 0);
  const double first_rate = course.rate();
  course.training().next();
  EXPECT_DOUBLE_EQ(course.epochs_done(), 0.4);
  EXPECT_LT(course.rate(), first_rate) << "the cosine falls";
  course.training().seek({2, 80});
  EXPECT_FALSE(course.is_done(8));
  course.training().next();
  EXPECT_TRUE(course.is_done(9));
}

TEST(RunFiles, OpensAgainWhatWasRemoved) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  SessionParts parts(parts_options(output));
  EXPECT_TRUE(parts.files.run().empty());
  parts.begin("");
  EXPECT_FALSE(parts.files.run().empty());
  EXPECT_EQ(world().broadcast_string(parts.files.run()), parts.files.run()) << "one run";
  EXPECT_EQ(parts.files.metrics() != nullptr, world().is_root());
  if (world().is_root()) fs::remove(output / "metrics.jsonl");
  world().barrier();
  parts.files.keep();
  if (world().is_root()) {
    EXPECT_TRUE(fs::exists(output / "metrics.jsonl"));
  }
  world().barrier();
}

TEST(Checkpoints, AreWrittenAndARunGoesOnFromThem) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  std::uint64_t hash = 0;
  {
    SessionParts parts(parts_options(output));
    parts.begin("auto");
    EXPECT_FALSE(parts.resumed.has_value()) << "there is nothing to go on from";
    EXPECT_EQ(parts.checkpoints.saved_step(), -1);
    parts.train_one_step();
    EXPECT_TRUE(parts.checkpoints.is_unsaved());
    parts.record.evaluation_due = true;
    parts.record.epoch = {.epoch = 0, .loss = 2, .weight = 40, .samples = 40};
    parts.checkpoints.save(parts.text(), parts.record);
    EXPECT_FALSE(parts.checkpoints.is_unsaved());
    EXPECT_EQ(parts.checkpoints.saved_step(), 1);
    EXPECT_FALSE(parts.checkpoints.is_outdated());
    parts.checkpoints.outdate();
    EXPECT_TRUE(parts.checkpoints.is_unsaved());
    EXPECT_TRUE(parts.checkpoints.is_outdated());
    parts.checkpoints.finish();
    EXPECT_TRUE(fs::exists(checkpoint::path_for(output / "checkpoints", 1)));
    hash = parts.trainer.weights_hash();
    world().barrier();
  }
  SessionParts parts(parts_options(output));
  EXPECT_NE(parts.trainer.weights_hash(), hash);
  parts.begin("auto");
  EXPECT_EQ(parts.resumed, 1);
  EXPECT_EQ(parts.trainer.weights_hash(), hash);
  EXPECT_EQ(parts.course.position().offset, 40);
  EXPECT_TRUE(parts.record.evaluation_due);
  EXPECT_EQ(parts.record.epoch.samples, 40);
  world().barrier();
}

TEST(RunFacts, AreRefusedOnAllRanksTogether) {
  const SharedDirectory shared;
  Options options = parts_options(shared.path() / "run");
  options.global_batch = 1000;
  EXPECT_NE(error_of([&] { agree_on_run(world(), options, "test", "{}", {.catalogue = datasets::catalogue()}); }),
            "no error")
      << "more samples in a batch than there are";
}

}  // namespace
}  // namespace lockstep::test
