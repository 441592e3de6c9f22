// --autotune: what is measured once is read again, a cache that is of no use costs a warning, a choice that is not on
// offer the first offer, and ranks with different batches train by the same choices.
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/prepare/autotune.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

class NamedOp : public Op {
 public:
  std::string_view name() const override { return "test_autotuned"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
};

// Two offers for one node, "slow" and "fast", that count how often they are built: only measurements build them.
struct Bench {
  NamedOp op;
  int built = 0;
  kernels::KernelRequest request{.op = &op, .inputs = {{{4}, DType::F32}}, .outputs = {{{4}, DType::F32}}};
  std::vector<kernels::KernelOffer> offers{offer("slow", 1000), offer("fast", 0)};

  kernels::KernelOffer offer(const std::string& implementation, std::int64_t microseconds) {
    return {.implementation = implementation, .inputs = {{}}, .outputs = {{}}, .build = [this, microseconds] {
              ++built;
              return kernels::make_kernel([microseconds](const kernels::Arguments&) {
                const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
                while (std::chrono::steady_clock::now() < end) {
                }
              });
            }};
  }
  train::Autotuned tune(const std::filesystem::path& cache) {
    return train::autotune(world(), cache, [this](const kernels::KernelChooser& choose) {
      EXPECT_TRUE(world().is_root()) << "only rank 0 compiles";
      choose(request, offers);
    });
  }
  const std::string& chosen(const train::Autotuned& tuned) const {
    return offers[tuned.choose(request, offers)].implementation;
  }
  int measured() const { return world().is_root() ? 2 : 0; }
};

// The lines that are logged while it lives.
class Heard {
 public:
  Heard()
      : before_(install_log(
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)))) {}
  ~Heard() { install_log(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

void write_text(const std::filesystem::path& path, const std::string& text) {
  if (world().is_root()) std::ofstream(path) << text;
  world().barrier();
}

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

// Every choice in the cache is `implementation` now.
void rewrite_choices(const std::filesystem::path& cache, const std::string& implementation) {
  json all = read_json(cache);
  for (auto& [machine, choices] : all.items()) {
    for (auto& [key, value] : choices.items()) value = implementation;
  }
  world().barrier();
  write_text(cache, all.dump());
}

TEST(Autotune, MeasuresOnceAndReadsAfterwards) {
  const SharedDirectory directory;
  const std::filesystem::path cache = directory.path() / "new" / "kernels.json";
  Bench first, second;
  const train::Autotuned measured = first.tune(cache);
  EXPECT_EQ(first.built, first.measured());
  EXPECT_EQ(first.chosen(measured), "fast");
  world().barrier();
  const auto written = std::filesystem::last_write_time(cache);
  const train::Autotuned read = second.tune(cache);
  EXPECT_EQ(second.built, 0);
  EXPECT_EQ(second.chosen(read), "fast");
  EXPECT_EQ(read.hash, measured.hash);
  EXPECT_EQ(std::filesystem::last_write_time(cache), written);
  world().barrier();
}

TEST(Autotune, ChoicesOfOtherModelsAreKeptAndDoNotCount) {
  const SharedDirectory directory;
  const std::filesystem::path cache = directory.path() / "kernels.json";
  Bench first, again, other, alone;
  first.tune(cache);
  other.request.inputs[0].shape = alone.request.inputs[0].shape = {5};
  EXPECT_EQ(other.tune(cache).hash, alone.tune(directory.path() / "alone.json").hash);
  world().barrier();
  again.tune(cache);
  EXPECT_EQ(again.built, 0) << "the choice of the first was kept";
}

TEST(Autotune, ACacheOfNoUseIsAWarning) {
  const SharedDirectory directory;
  const std::filesystem::path torn = directory.path() / "torn.json", taken = directory.path() / "taken",
                              under_a_file = torn / "kernels.json";
  write_text(torn, "{\"a machine\": {\"conv");
  if (world().is_root()) std::filesystem::create_directory(taken);
  world().barrier();
  const auto said = [](const std::filesystem::path& cache) {
    const Heard heard;
    Bench bench;
    EXPECT_EQ(bench.chosen(bench.tune(cache)), "fast");
    EXPECT_EQ(bench.built, bench.measured());
    world().barrier();
    return heard.text();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return !world().is_root() || text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(said(under_a_file), "choices could not be saved"));
  EXPECT_TRUE(has(said(torn), "is not JSON"));
  EXPECT_TRUE(read_json(torn).is_object()) << "replaced";
  const std::string of_directory = said(taken);
  EXPECT_TRUE(has(of_directory, "cannot be read")) << of_directory;
  EXPECT_TRUE(has(of_directory, "choices could not be saved")) << of_directory;
  EXPECT_EQ(said({}), "") << "nowhere to keep them is nobody's fault";
}

TEST(Autotune, AChoiceThatIsNotOnOfferIsMeasuredAgainAndReplaced) {
  const SharedDirectory directory;
  const std::filesystem::path cache = directory.path() / "kernels.json";
  Bench first, second, third, fourth;
  first.tune(cache);
  world().barrier();
  rewrite_choices(cache, "jit_wino");
  EXPECT_EQ(second.chosen(second.tune(cache)), "fast");
  EXPECT_EQ(second.built, second.measured());
  world().barrier();
  rewrite_choices(cache, "vector:avx512");  // the name of "native:avx512" in caches of earlier versions
  EXPECT_EQ(fourth.chosen(fourth.tune(cache)), "fast");
  EXPECT_EQ(fourth.built, fourth.measured());
  world().barrier();
  const train::Autotuned tuned = third.tune(cache);
  EXPECT_EQ(third.built, 0) << "the new choice was kept";
  third.offers[1].implementation = "other";
  EXPECT_EQ(third.chosen(tuned), "slow") << "the first offer, where the choice is none of them";
  third.request.inputs[0].shape = {5};
  third.offers[1].implementation = "fast";
  EXPECT_EQ(third.chosen(tuned), "slow") << "the first offer, where nothing was measured";
}

Task uneven(const std::filesystem::path& cache) {
  return {.samples = 50,
          .channels = 3,
          .side = 8,
          .steps = 3,
          .options = {.global_batch = 13, .seed = 5, .autotune = true, .autotune_cache = cache},
          .network = make_resnet};
}

void expect_alike(const Rig& rig) {
  for (const double loss : rig.losses) EXPECT_TRUE(std::isfinite(loss));
  comm::check_same(world(), "weights", formatted("{:x}", rig.trainer->weights_hash()));
  comm::check_same(world(), "kernels", rig.trainer->kernels());
}

TEST(Autotune, RanksWithDifferentBatchesTrainAlike) {
  const SharedDirectory directory;
  const std::filesystem::path cache = directory.path() / "kernels.json";
  const auto first = run_task(world(), uneven(cache));
  expect_alike(*first);
  const auto again = run_task(world(), uneven(cache));
  expect_alike(*again);
  expect_same_bits(*first, *again, "the choices of the cache");
  expect_alike(*run_task(world(), uneven(directory.path())));  // which cannot be read or written, being a directory
}

TEST(Autotune, ExactMathTakesNoWinogradFromTheCache) {
  const SharedDirectory directory;
  Task task = uneven(directory.path() / "kernels.json");
  task.options.compile.kernels.conv_math = kernels::KernelOptions::ConvMath::Exact;
  run_task(world(), task);
  rewrite_choices(task.options.autotune_cache, "jit_wino");
  const auto rig = run_task(world(), task);
  expect_alike(*rig);
  const std::int64_t samples = static_cast<std::int64_t>(rig->samples[0].size());
  const plan::Plan& plan = rig->trainer->model().plan(
      Mode::Train, {{"image", {{samples, 3, 8, 8}, DType::F32}}, {"label", {{samples}, DType::I32}}});
  for (const plan::PlanStep& step : plan.steps())
    EXPECT_EQ(step.offer.implementation.find("wino"), std::string::npos) << step.path;
}

}  // namespace
}  // namespace lockstep::test
