// Times attention beside the same composed of matmul and softmax, and the cross entropy over a vocabulary beside
// linear and cross_entropy: whole plans, forward (evaluation) and forward with backward (training), and the rate of the
// fused kernels beside what the processor can do. bench/torch_attention.py times PyTorch on the same shapes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/timing.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/host/threads.h"
#include "lockstep/kernels/peaks.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/attention.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/softmax.h"
#include "lockstep/ops/vocabulary_cross_entropy.h"
#include "lockstep/plan/compiled_model.h"

using namespace lockstep;

namespace {

struct BenchOptions {
  double seconds = 0.5;
  int threads = 0;
  bool json = false;
};

struct Heads {
  const char* name;
  std::int64_t samples, steps, heads, width;
  bool causal;
};
struct Words {
  const char* name;
  std::int64_t positions, features, vocabulary;
};

constexpr Heads kHeads[] = {{"gpt 8 x 256", 8, 256, 6, 64, true},
                            {"vit-tiny 64 x 197", 64, 197, 3, 64, false},
                            {"long 1 x 2048", 1, 2048, 12, 64, true}};
constexpr Words kWords[] = {{"bytes", 2048, 384, 256}, {"bpe", 2048, 384, 8192}};

// The heads of part `which` of qkv (N, T, 3 H, D) as (N, H, T, D).
Value heads_of(Value qkv, const Heads& h, std::int64_t which) {
  return permute(slice(qkv, 2, which * h.heads, h.heads), {0, 2, 1, 3});
}

// The mask, the scale or the lengths are inputs: a plan computes what follows from parameters alone only once.
Value composed(Value qkv, const Heads& h, const plan::Inputs& in) {
  const Value products = matmul(heads_of(qkv, h, 0), heads_of(qkv, h, 1), false, true);
  const Value scores = h.causal ? products * (1 / std::sqrt(h.width)) + in["mask"] : products * in["scale"];
  return permute(matmul(softmax(scores), heads_of(qkv, h, 2)), {0, 2, 1, 3});
}

Value fused(Value qkv, const Heads& h, const plan::Inputs& in) {
  return self_attention(qkv, h.heads, {.causal = h.causal, .lengths = in["lengths"]});
}

struct Times {
  double forward, both;  // seconds
};

// A model of parameters, of which `trace` makes a value or a loss; `keys` of attention's inputs.
Times time_plans(std::vector<Parameter>& parameters, const std::map<std::string, Type>& inputs, std::int32_t keys,
                 bool bf16, const BenchOptions& o, const std::function<Value(const plan::Inputs&)>& trace) {
  std::vector<NamedParameter> named;
  for (std::size_t i = 0; i < parameters.size(); ++i) named.push_back({formatted("p{}", i), &parameters[i]});
  plan::CompiledModel model(std::move(named),
                            [&](const plan::Inputs& in) {
                              const Value y = trace(in);
                              return plan::Traced{.loss = mean(square(y)), .prediction = y};
                            },
                            {.seed = 1}, {.bf16 = bf16});
  const auto time_mode = [&](Mode mode) {
    plan::Plan& plan = model.plan(mode, inputs);
    // A run may use the memory of its inputs for other values, so each run gets them anew, as each batch is.
    const auto fill = [&] {
      if (auto* mask = static_cast<float*>(plan.input("mask"))) {
        const std::int64_t n = inputs.at("mask").shape[0];
        for (std::int64_t i = 0; i < n * n; ++i) mask[i] = i % n > i / n ? -INFINITY : 0;
      }
      if (auto* scale = static_cast<float*>(plan.input("scale"))) *scale = 0.125F;
      if (auto* lengths = static_cast<std::int32_t*>(plan.input("lengths")))
        std::fill_n(lengths, inputs.at("lengths").shape[0], keys);
      if (auto* label = static_cast<std::int32_t*>(plan.input("label"))) {
        for (std::int64_t i = 0; i < inputs.at("label").shape[0]; ++i) label[i] = static_cast<std::int32_t>(i % 251);
      }
    };
    return time_prepared(o.seconds, fill, [&] { plan.run(); }).median;
  };
  const double both = time_mode(Mode::Train);  // first, as parameters then get memory for their gradients
  return {time_mode(Mode::Eval), both};
}

Times time_heads(const Heads& h, bool bf16, const BenchOptions& o,
                 Value (*attend)(Value, const Heads&, const plan::Inputs&)) {
  std::vector<Parameter> parameters(1);
  parameters[0] = {.shape = {h.samples, h.steps, 3 * h.heads, h.width}, .initialize = nn::normal(0, 1)};
  std::map<std::string, Type> inputs{{"lengths", {Shape{h.samples}, DType::I32}}};
  if (attend == composed && h.causal) inputs = {{"mask", {Shape{h.steps, h.steps}, DType::F32}}};
  if (attend == composed && !h.causal) inputs = {{"scale", {Shape{1}, DType::F32}}};
  return time_plans(parameters, inputs, static_cast<std::int32_t>(h.steps), bf16, o,
                    [&](const plan::Inputs& in) { return attend(in.graph().parameter(parameters[0]), h, in); });
}

Times time_words(const Words& w, bool bf16, const BenchOptions& o, bool fuse) {
  std::vector<Parameter> parameters(2);
  parameters[0] = {.shape = {w.positions, w.features}, .initialize = nn::normal(0, 1)};
  parameters[1] = {.shape = {w.vocabulary, w.features}, .initialize = nn::normal(0, 0.05)};
  const Type labels{Shape{w.positions}, DType::I32};
  return time_plans(parameters, {{"label", labels}}, 0, bf16, o, [&](const plan::Inputs& in) {
    Graph& g = in.graph();
    const Value x = g.parameter(parameters[0]), table = g.parameter(parameters[1]);
    const Value loss = fuse ? vocabulary_cross_entropy(x, table, {}, in["label"]).loss.mean
                            : cross_entropy(linear(x, table), in["label"]).mean;
    return reshape(loss, {1});
  });
}

struct Row {
  std::string name, precision;
  Times own, other;
  double forward_flops;  // of the products that are counted; backward has `ratio` times as many
  double ratio;
};

void report(const Row& r, const kernels::Peaks& peaks, const BenchOptions& o) {
  const double forward = r.forward_flops / r.own.forward * 1e-9,
               backward = r.ratio * r.forward_flops / (r.own.both - r.own.forward) * 1e-9;
  if (o.json) {
    const nlohmann::ordered_json line{{"shape", r.name},
                                      {"precision", r.precision},
                                      {"threads", o.threads},
                                      {"forward_ms", r.own.forward * 1e3},
                                      {"both_ms", r.own.both * 1e3},
                                      {"composed_forward_ms", r.other.forward * 1e3},
                                      {"composed_both_ms", r.other.both * 1e3},
                                      {"forward_gflops", forward},
                                      {"backward_gflops", backward},
                                      {"peak_gflops", peaks.f32_flops * 1e-9},
                                      {"cpu", host::cpu_info().model}};
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print(
      "{:<20} {:<5} forward {:7.2f} ms {:5.0f} GFLOP/s, composed {:7.2f} ms; with backward {:7.2f} ms {:5.0f} "
      "GFLOP/s, composed {:7.2f} ms; {:.2f} and {:.2f} times as fast\n",
      r.name, r.precision, r.own.forward * 1e3, forward, r.other.forward * 1e3, r.own.both * 1e3, backward,
      r.other.both * 1e3, r.other.forward / r.own.forward, r.other.both / r.own.both);
}

void run(const BenchOptions& o) {
  const kernels::Peaks peaks = kernels::measure_peaks();
  if (!o.json) fmt::print("{} threads, f32 peak {:.0f} GFLOP/s\n", o.threads, peaks.f32_flops * 1e-9);
  for (const bool bf16 : {false, true}) {
    const std::string precision = bf16 ? "bf16" : "f32";
    for (const Heads& h : kHeads) {
      const double pairs =
          h.causal ? static_cast<double>(h.steps * (h.steps + 1)) / 2 : static_cast<double>(h.steps * h.steps);
      report({h.name, precision, time_heads(h, bf16, o, fused), time_heads(h, bf16, o, composed),
              4 * static_cast<double>(h.samples * h.heads * h.width) * pairs, 2.5},
             peaks, o);
    }
    for (const Words& w : kWords) {
      report({w.name, precision, time_words(w, bf16, o, true), time_words(w, bf16, o, false),
              2 * static_cast<double>(w.positions * w.features * w.vocabulary), 3},
             peaks, o);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times attention and the cross entropy over a vocabulary beside what they replace");
  BenchOptions options;
  app.add_option("--seconds", options.seconds, "time for each figure")->capture_default_str();
  app.add_option("--threads", options.threads, "compute threads (0: one per core)")->capture_default_str();
  app.add_flag("--json", options.json, "one JSON object per line");
  CLI11_PARSE(app, argc, argv);
  host::apply_process_settings(1, options.threads > 0 ? options.threads : host::environment_threads(), argv);
  try {
    const host::ThreadBudget budget = host::budget(1, options.threads, 0);
    host::apply(budget);
    options.threads = budget.compute;
    run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_attention: {}\n", error.what());
    return 1;
  }
  return 0;
}
