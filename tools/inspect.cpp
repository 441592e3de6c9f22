#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/core/printable.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/nn/summary.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/options/option_checks.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"
#include "tools/choice_option.h"
#include "tools/commands.h"
#include "tools/picture/graphviz.h"
#include "tools/usage.h"

namespace lockstep::tools {
namespace {

enum class Numbers : std::uint8_t { F32, F64, BF16 };
enum class Boxes : std::uint8_t { Auto, Steps, Blocks };

}  // namespace
}  // namespace lockstep::tools

template <>
struct lockstep::train::Choices<lockstep::tools::Numbers> {
  using Numbers = lockstep::tools::Numbers;
  static constexpr std::array kAll{NamedValue{Numbers::F32, "f32"}, NamedValue{Numbers::F64, "f64"},
                                   NamedValue{Numbers::BF16, "bf16"}};
};

template <>
struct lockstep::train::Choices<lockstep::tools::Boxes> {
  using Boxes = lockstep::tools::Boxes;
  static constexpr std::array kAll{NamedValue{Boxes::Auto, "auto"}, NamedValue{Boxes::Steps, "steps"},
                                   NamedValue{Boxes::Blocks, "blocks"}};
};

template <>
struct lockstep::train::Choices<lockstep::Mode> {
  static constexpr std::array kAll{NamedValue{Mode::Train, "train"}, NamedValue{Mode::Eval, "eval"}};
};

namespace lockstep::tools {
namespace {

struct InspectOptions {
  std::string model;
  std::int64_t batch = 1, classes = 0;
  Numbers precision = Numbers::F32;
  Mode mode = Mode::Train;
  std::vector<std::int64_t> shape;
  std::string svg;
  Boxes detail = Boxes::Auto;
  bool summary = false, plan = false, parameters = false, json = false;
};

std::string_view role_name(const Parameter& p) {
  switch (p.role) {
    case Role::Weight:
      return "weight";
    case Role::Bias:
      return "bias";
    case Role::Norm:
      return "norm";
    case Role::Buffer:
      return "buffer";
  }
  return "?";
}

void print_parameters(const models::Classifier& model, DType precision) {
  for (const NamedParameter& named : model.named_parameters()) {
    const Parameter& p = *named.parameter;
    fmt::print("{:<40} {:<4} {:<20} {:>10}  {}\n", named.name, name_of(p.is_integer ? DType::I64 : precision),
               p.shape.str(), p.shape.elements(), role_name(p));
  }
}

nlohmann::ordered_json model_json(const models::Classifier& model, const nn::Summary& summary, DType precision) {
  nlohmann::ordered_json document = {{"batch", summary.batch},
                                     {"parameters", summary.parameters},
                                     {"trainable", summary.trainable},
                                     {"buffers", summary.buffers},
                                     {"state_bytes", summary.state_bytes},
                                     {"activation_bytes", summary.activation_bytes},
                                     {"flops", summary.flops}};
  document["modules"] = nlohmann::ordered_json::array();
  for (const nn::SummaryRow& row : summary.rows) {
    document["modules"].push_back({{"path", row.path},
                                   {"ops", row.ops},
                                   {"type", name_of(row.output.dtype)},
                                   {"shape", row.output.shape.dims()},
                                   {"parameters", row.parameters},
                                   {"flops", row.flops},
                                   {"bytes", row.bytes}});
  }
  document["tensors"] = nlohmann::ordered_json::array();
  for (const NamedParameter& named : model.named_parameters()) {
    const Parameter& p = *named.parameter;
    document["tensors"].push_back({{"name", named.name},
                                   {"type", name_of(p.is_integer ? DType::I64 : precision)},
                                   {"shape", p.shape.dims()},
                                   {"role", role_name(p)}});
  }
  return document;
}

nlohmann::ordered_json plan_json(const plan::Plan& plan) {
  const plan::Assembly& assembly = plan.assembly();
  const auto forms = [&](const std::vector<int>& buffers) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const int b : buffers) {
      const plan::PlanBuffer& p = assembly.buffers[static_cast<std::size_t>(b)];
      list.push_back({{"type", name_of(p.type.dtype)}, {"shape", p.type.shape.dims()}, {"layout", p.layout.str()}});
    }
    return list;
  };
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const plan::PlanStep& step : plan.steps()) {
    steps.push_back({{"path", step.path},
                     {"op", step.op->name()},
                     {"attributes", step.op->attributes()},
                     {"reason", step.reason},
                     {"kernel", step.offer.implementation},
                     {"flops", step.flops},
                     {"bytes", plan.bytes(step)},
                     {"inputs", forms(step.inputs)},
                     {"outputs", forms(step.outputs)}});
  }
  return {{"arena_bytes", plan.arena_bytes()},
          {"constant_bytes", plan.constant_bytes()},
          {"flops", plan.flops()},
          {"steps", std::move(steps)}};
}

// A plan's memory holds each value for a while, so the largest one tells what cannot be compiled, before oneDNN, which
// counts through batches, spends minutes on it.
void check_memory(const nn::Summary& summary) {
  const auto bytes = [](const nn::SummaryRow& row) {
    return static_cast<double>(row.output.shape.elements()) * static_cast<double>(size_of(row.output.dtype));
  };
  const auto largest = std::ranges::max_element(summary.rows, {}, bytes);
  if (largest == summary.rows.end()) return;
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  check(bytes(*largest) <= memory, "inspect",
        "a batch of {} samples: the output {} of {} alone takes {:.0f} MiB, and this machine has {:.0f}; --plan takes "
        "the plan's memory, so it needs a smaller --batch (--summary needs no memory)",
        summary.batch, largest->output.shape.str(), largest->path, bytes(*largest) / 1048576, memory / 1048576);
}

// The subject of --plan and --svg: the model compiled for one kind of batch.
class ModelPlan {
 public:
  ModelPlan(const models::Classifier& model, const Type& images, Mode mode, const plan::CompileOptions& compile)
      : compiled_(model.named_parameters(), models::classify(model), {.dtype = images.dtype}, compile),
        plan_(compiled_.plan(mode, {{"image", images}, {"label", {Shape{images.shape[0]}, DType::I32}}})) {
    for (const NamedParameter& p : model.named_parameters())
      parameter_bytes_ += static_cast<std::size_t>(p.parameter->shape.elements()) * size_of(images.dtype);
  }

  const plan::Plan& plan() const { return plan_; }

  std::string text() const {
    const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / 1048576; };
    return fmt::format("{}parameters {:.1f} MiB; with padding, gradients and derived copies {:.1f} MiB\n",
                       plan_.describe(), mib(parameter_bytes_), mib(compiled_.parameters().bytes()));
  }

 private:
  plan::CompiledModel compiled_;
  const plan::Plan& plan_;
  std::size_t parameter_bytes_ = 0;
};

// Draws each step of a plan of few steps by itself.
PictureDetail detail_of(const InspectOptions& o, const plan::Plan& plan) {
  constexpr std::size_t kFewSteps = 40;
  if (o.detail == Boxes::Auto) return plan.steps().size() <= kFewSteps ? PictureDetail::Steps : PictureDetail::Blocks;
  return o.detail == Boxes::Steps ? PictureDetail::Steps : PictureDetail::Blocks;
}

void write_picture(const InspectOptions& o, const plan::Plan& plan) {
  const Picture picture = make_picture(plan.assembly(), detail_of(o, plan));
  const std::string name = fmt::format("{}, {}, batch {}, {}", o.model, train::choice_name(o.mode), o.batch,
                                       train::choice_name(o.precision));
  const PictureTexts texts = picture_texts(plan.assembly(), picture, name);
  const std::filesystem::path file = o.svg;
  std::string text = dot_text(plan.assembly(), picture, texts);
  if (file.extension() != ".gv") text = svg_of(text, texts);
  io::replace_file(file, text, "inspect");
  fmt::print("{}\n", printable(o.svg));
}

void check_options(const InspectOptions& o) {
  check(o.batch > 0, "inspect", "a batch of {} samples, expected at least 1", o.batch);
  check(!o.json || !(o.summary || o.parameters || !o.svg.empty()), "inspect",
        "--json has the modules and the parameters, and with --plan the plan: expected it without --summary, "
        "--parameters and --svg");
  const std::string ending = std::filesystem::path(o.svg).extension();
  check(o.svg.empty() || ending == ".svg" || ending == ".gv", "inspect",
        "--svg is {}, expected a name that ends in .svg, or in .gv for Graphviz", o.svg);
  check(o.detail == Boxes::Auto || !o.svg.empty(), "inspect",
        "--detail applies to the picture, expected --svg FILE with it");
}

void inspect(const InspectOptions& o) {
  check_usage([&] { check_options(o); });
  const models::ModelEntry& entry = models::find_model(o.model);
  const Shape image = o.shape.empty() ? entry.image : Shape(o.shape);
  const auto model = models::build_model(o.model, o.classes, image);
  const Type images{image.batched(o.batch), o.precision == Numbers::F64 ? DType::F64 : DType::F32};
  const auto summary = [&] {
    return nn::summarize(
        *model, [&](Value x) { return (*model)(x); }, images, o.mode);
  };
  const bool needs_plan = o.plan || !o.svg.empty();
  if (needs_plan) check_memory(summary());
  const auto plan = needs_plan ? std::make_unique<ModelPlan>(*model, images, o.mode,
                                                             plan::CompileOptions{.bf16 = o.precision == Numbers::BF16})
                               : nullptr;
  if (o.json) {
    nlohmann::ordered_json document = model_json(*model, summary(), images.dtype);
    if (o.plan) document["plan"] = plan_json(plan->plan());
    fmt::print("{}\n", document.dump(1));
    return;
  }
  if (o.parameters) print_parameters(*model, images.dtype);
  if (o.summary || !(o.parameters || needs_plan)) fmt::print("{}", summary().str());
  if (o.plan) fmt::print("{}", plan->text());
  if (!o.svg.empty()) write_picture(o, plan->plan());
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("inspect", "Show a model's modules, parameters, or compiled plan");
  auto o = std::make_shared<InspectOptions>();
  command->add_option("model", o->model, "A name that `lockstep models` lists")->required();
  command->add_option("--batch", o->batch, "Samples per batch")
      ->check(train::whole_number<std::int64_t>)
      ->capture_default_str();
  command->add_option("--classes", o->classes, "Classes; 0: the model's own")
      ->check(train::whole_number<std::int64_t>)
      ->capture_default_str();
  command->add_option("--shape", o->shape, "Shape of one sample: C,H,W; if not the model's own")->delimiter(',');
  add_choice(*command, "--precision", o->precision, "Floating type; bf16: f32 with products and activations in bf16");
  add_choice(*command, "--mode", o->mode, "With gradient, or evaluation");
  command->add_flag("--summary", o->summary,
                    "Modules with output shapes, parameters, FLOPs, bytes (unless told otherwise)");
  command->add_flag("--plan", o->plan,
                    "Steps of the compiled plan with a cross entropy loss: kernels, layouts, memory");
  command->add_option("--svg", o->svg,
                      "Draw the plan into this file, as a picture for a browser (needs Graphviz's program dot); a name "
                      "that ends in .gv: as text for Graphviz");
  add_choice(*command, "--detail", o->detail,
             "Boxes of the picture: single steps, or blocks: modules, repeated ones folded; auto: blocks of a plan of "
             "more than 40 steps");
  command->add_flag("--parameters", o->parameters, "Names, types and shapes of parameters and buffers");
  command->add_flag("--json", o->json,
                    "One JSON object with modules and parameters, and with --plan its steps, instead of text");
  command->callback([o] { inspect(*o); });
}

}  // namespace lockstep::tools
