// Times every kernel that the registry offers for the layers of models of the zoo, one by one, against what the
// processor can do; and what the plan itself costs per node. Tables for people, or with --json one object per line for
// bench/results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/timing.h"
#include "lockstep/core/tensor.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/host/threads.h"
#include "lockstep/kernels/peaks.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/plan/fusion.h"
#include "lockstep/plan/gradient.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"

using namespace lockstep;

namespace {

struct BenchOptions {
  std::vector<std::string> models{"toy", "mlp", "resnet20", "resnet18_cifar", "resnet50"};
  std::vector<std::string> precisions{"f32", "bf16"};
  std::vector<std::string> ops{"conv2d", "linear"};
  std::int64_t batch = 0;
  double seconds = 0.05;
  int threads = 0;
  bool json = false;
};

// One kind of node in a model's training graph: all nodes of that op with these types.
struct Layer {
  std::string path;                   // of the first one
  std::shared_ptr<const Op> node_op;  // the request's
  kernels::KernelRequest request;
  std::vector<bool> is_parameter;  // by input
  int count = 1;

  std::string op() const { return std::string(request.op->name()); }
  std::string types() const {
    std::string text;
    for (const Type& t : request.inputs) text += (text.empty() ? "" : " ") + t.str();
    return text + " -> " + request.outputs[0].str();
  }
};

std::int64_t usual_batch(const std::string& model) {
  const std::map<std::string, std::int64_t> batches{
      {"toy", 16}, {"mlp", 128}, {"resnet20", 64}, {"resnet18_cifar", 32}, {"resnet50", 8}};
  const auto found = batches.find(model);
  return found == batches.end() ? 32 : found->second;
}

std::vector<Layer> layers_of(const std::string& name, std::int64_t batch, bool bf16,
                             const std::vector<std::string>& ops) {
  const models::ModelEntry& entry = models::find_model(name);
  const auto model = models::build_model(name);
  auto graph = std::make_unique<Graph>(Mode::Train, DType::F32, 1, bf16 ? DType::BF16 : DType::F32);
  plan::Traced traced = models::classify(*model)(plan::Inputs(
      *graph, {{"image", {entry.image.batched(batch), DType::F32}}, {"label", {Shape{batch}, DType::I32}}}));
  int forward_nodes = static_cast<int>(graph->nodes().size());
  std::vector<plan::ParameterGradient> gradients = plan::append_gradient(*graph, traced.loss, batch);
  const plan::GraphRoots roots{traced, gradients, forward_nodes};
  graph = plan::fuse_patterns(*graph, roots, false);
  graph = plan::fuse_pointwise(*graph, roots);
  std::vector<Layer> layers;
  std::map<std::string, std::size_t> known;
  for (const Node& node : graph->nodes()) {
    if (node.kind != Node::Kind::Op || node.op->is_view()) continue;
    const auto wanted = [&](const std::string& op) { return op == "all" || node.op->name().starts_with(op); };
    if (std::ranges::none_of(ops, wanted)) continue;
    Layer layer{
        .path = node.path, .node_op = node.op, .request = {node.op.get(), {}, node.outputs}, .is_parameter = {}};
    for (Value v : node.inputs) {
      layer.request.inputs.push_back(v.type());
      const Node::Kind kind = graph->nodes()[static_cast<std::size_t>(v.node())].kind;
      layer.is_parameter.push_back(kind == Node::Kind::Parameter);
    }
    const auto [at, is_new] = known.emplace(layer.op() + node.op->attributes() + layer.types(), layers.size());
    if (is_new) {
      layers.push_back(std::move(layer));
    } else {
      ++layers[at->second].count;
    }
  }
  return layers;
}

// The layouts of a plan: activations in blocks of channels, parameters plain.
std::vector<Layout> usual_layouts(const Layer& layer) {
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < layer.request.inputs.size(); ++i) {
    const Shape& shape = layer.request.inputs[i].shape;
    const bool blocked = !layer.is_parameter[i] && shape.rank() == 4 && shape[1] >= 16;
    layouts.push_back(blocked ? Layout::channels_blocked(shape, 16) : Layout{});
  }
  return layouts;
}

AlignedBuffer make_buffer(const Type& type, const Layout& layout) {
  const std::int64_t elements = layout.storage_elements(type.shape);
  AlignedBuffer memory = allocate_aligned(static_cast<std::size_t>(elements) * size_of(type.dtype));
  std::fill_n(memory.get(), static_cast<std::size_t>(elements) * size_of(type.dtype), std::byte{0});
  if (type.dtype == DType::F32 || type.dtype == DType::BF16) {
    Tensor values(type.shape, DType::F32);
    RandomStream random(1, static_cast<std::uint64_t>(elements));
    for (float& v : values.data<float>()) v = static_cast<float>(random.normal());
    Reorder(type.shape, DType::F32, {}, type.dtype, layout)(values.raw(), memory.get());
  }
  return memory;
}

struct Measured {
  Timing timing;
  double bytes;
};

Measured measure(const Layer& layer, const kernels::KernelOffer& offer, double seconds) {
  const kernels::KernelRequest& r = layer.request;
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::int64_t bytes = 0;
  const auto add = [&](const Type& type, const Layout& layout) {
    memory.push_back(make_buffer(type, layout));
    bytes += layout.storage_elements(type.shape) * static_cast<std::int64_t>(size_of(type.dtype));
    return memory.back().get();
  };
  for (std::size_t i = 0; i < r.inputs.size(); ++i) {
    Type type = r.inputs[i];
    if (!offer.input_dtypes.empty()) type.dtype = offer.input_dtypes[i];
    inputs.push_back(add(type, offer.inputs[i]));
  }
  for (std::size_t i = 0; i < r.outputs.size(); ++i) outputs.push_back(add(r.outputs[i], offer.outputs[i]));
  const auto kernel = offer.build();
  const AlignedBuffer workspace = allocate_aligned(kernel->workspace_bytes());
  const kernels::Arguments arguments{inputs.data(), outputs.data(), workspace.get()};
  return {time(seconds, [&] { kernel->run(arguments); }), static_cast<double>(bytes)};
}

struct Setting {
  std::string model, precision;
  std::int64_t batch;
};

void report(const Setting& s, const Layer& layer, const kernels::KernelOffer& offer, bool first,
            const kernels::Peaks& peaks, const BenchOptions& o) {
  const Measured m = measure(layer, offer, o.seconds);
  const double flops = layer.request.op->flops(layer.request.inputs, layer.request.outputs);
  const double peak = layer.request.has_bf16() && peaks.bf16_flops > 0 ? peaks.bf16_flops : peaks.f32_flops;
  const double rate = flops / m.timing.median, share = rate / peak;
  const double bandwidth = m.bytes / m.timing.median;
  if (o.json) {
    const nlohmann::ordered_json line{{"model", s.model},
                                      {"batch", s.batch},
                                      {"precision", s.precision},
                                      {"threads", o.threads},
                                      {"path", layer.path},
                                      {"count", layer.count},
                                      {"op", layer.op()},
                                      {"attributes", layer.request.op->attributes()},
                                      {"types", layer.types()},
                                      {"implementation", offer.implementation},
                                      {"chosen", first},
                                      {"median_us", m.timing.median * 1e6},
                                      {"min_us", m.timing.min * 1e6},
                                      {"gflops", rate * 1e-9},
                                      {"share_of_peak", share},
                                      {"gbytes", bandwidth * 1e-9},
                                      {"peak_gflops", peak * 1e-9},
                                      {"peak_gbytes", peaks.bytes * 1e-9},
                                      {"cpu", host::cpu_info().model}};
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{} {:<24} {:<3} {:<26} {:>10.1f} us {:>8.1f} GFLOP/s {:>6.1f}% {:>7.1f} GB/s {:>6.1f}%  {}\n",
             first ? '*' : ' ', layer.op(), layer.count, offer.implementation, m.timing.median * 1e6, rate * 1e-9,
             100 * share, bandwidth * 1e-9, 100 * bandwidth / peaks.bytes, layer.types());
}

void bench_model(const Setting& s, const kernels::Peaks& peaks, const BenchOptions& o) {
  if (!o.json) fmt::print("{}, batch {}, {}\n", s.model, s.batch, s.precision);
  for (const Layer& layer : layers_of(s.model, s.batch, s.precision == "bf16", o.ops)) {
    if (s.precision == "bf16" && !layer.request.has_bf16()) continue;  // the same as in f32
    const auto offers = kernels::kernel_registry().offers(layer.request, usual_layouts(layer));
    if (offers.empty() && !o.json) fmt::print("  {:<24} no kernel: computed in f32  {}\n", layer.op(), layer.types());
    for (std::size_t i = 0; i < offers.size(); ++i) report(s, layer, offers[i], i == 0, peaks, o);
  }
}

// Measures the cost of a node without its arithmetic, by a chain of tiny nodes.
void bench_dispatch(const BenchOptions& o) {
  constexpr int kNodes = 100, kRuns = 100;
  const Type type{Shape{1, 16}, DType::F32};
  plan::CompiledModel model({}, [](const plan::Inputs& in) {
    Value x = in["x"];
    for (int i = 0; i < kNodes; ++i) x = relu(x);
    return plan::Traced{.prediction = x};
  });
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", type}});
  std::fill_n(static_cast<float*>(plan.input("x")), 16, 1.0F);
  const Timing t = time(o.seconds, [&] {
    for (int i = 0; i < kRuns; ++i) plan.run();
  });
  const double nodes = static_cast<double>(plan.steps().size()) * kRuns, per_node = t.median / nodes * 1e9;
  const std::string implementation = plan.steps().front().offer.implementation;
  if (o.json) {
    const nlohmann::ordered_json line{{"dispatch_ns_per_node", per_node},
                                      {"min_ns_per_node", t.min / nodes * 1e9},
                                      {"nodes", plan.steps().size()},
                                      {"implementation", implementation},
                                      {"threads", o.threads},
                                      {"cpu", host::cpu_info().model}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("dispatch: {:.0f} ns a node (min {:.0f}), a ReLU of 16 elements included ({})\n", per_node,
               t.min / nodes * 1e9, implementation);
  }
}

void run(BenchOptions o) {
  const host::ThreadBudget threads = host::budget(1, o.threads, 0);
  apply(threads);
  o.threads = threads.compute;
  const kernels::Peaks peaks = kernels::measure_peaks();
  if (!o.json) {
    fmt::print("{}, {} threads; peaks: {:.0f} GFLOP/s f32, {:.0f} bf16, {:.1f} GB/s; * is what a plan takes\n",
               host::cpu_info().model, o.threads, peaks.f32_flops * 1e-9, peaks.bf16_flops * 1e-9, peaks.bytes * 1e-9);
  }
  for (const std::string& model : o.models) {
    for (const std::string& precision : o.precisions)
      bench_model({model, precision, o.batch > 0 ? o.batch : usual_batch(model)}, peaks, o);
  }
  bench_dispatch(o);
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions o;
  CLI::App app("Times the kernels that models' layers may run on: bench_kernels resnet20");
  app.add_option("models", o.models, "models of the zoo; none but `none` for the cost of dispatch alone");
  app.add_option("--precision", o.precisions, "f32 and bf16")->delimiter(',')->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--ops", o.ops, "ops whose names begin so; all: every op")->delimiter(',');
  app.add_option("--batch", o.batch, "samples; 0: the usual number of each model")->capture_default_str();
  app.add_option("--seconds", o.seconds, "at least this long per kernel")->capture_default_str();
  app.add_option("--threads", o.threads, "compute threads; 0: the cores it may use")->capture_default_str();
  app.add_flag("--json", o.json, "JSON lines instead of tables");
  CLI11_PARSE(app, argc, argv);
  if (o.models == std::vector<std::string>{"none"}) o.models.clear();
  host::apply_process_settings(1, o.threads > 0 ? o.threads : host::environment_threads(), argv);
  try {
    run(o);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_kernels: {}\n", error.what());
    return 1;
  }
}
