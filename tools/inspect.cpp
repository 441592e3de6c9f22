#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/nn/summary.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/options/option_checks.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"
#include "tools/commands.h"

namespace lockstep::tools {
namespace {

struct InspectOptions {
  std::string model;
  std::int64_t batch = 1, classes = 0;
  std::string precision = "f32", mode = "train";
  std::vector<std::int64_t> shape;
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

void print_json(const models::Classifier& model, const nn::Summary& summary, DType precision) {
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
  fmt::print("{}\n", document.dump(1));
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
        "the "
        "plan's memory, so it needs a smaller --batch (--summary needs no memory)",
        summary.batch, largest->output.shape.str(), largest->path, bytes(*largest) / 1048576, memory / 1048576);
}

void print_plan(const models::Classifier& model, const Type& images, Mode mode, const plan::CompileOptions& compile) {
  plan::CompiledModel compiled(model.named_parameters(), models::classify(model), {.dtype = images.dtype}, compile);
  const plan::Plan& plan = compiled.plan(mode, {{"image", images}, {"label", {Shape{images.shape[0]}, DType::I32}}});
  std::int64_t elements = 0;
  for (const NamedParameter& p : model.named_parameters()) elements += p.parameter->shape.elements();
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / 1048576; };
  fmt::print("{}parameters {:.1f} MiB; with padding, gradients and derived copies {:.1f} MiB\n", plan.describe(),
             mib(static_cast<std::size_t>(elements) * size_of(images.dtype)), mib(compiled.parameters().bytes()));
}

void inspect(const InspectOptions& o) {
  const models::ModelEntry& entry = models::find_model(o.model);
  check(o.batch > 0, "inspect", "a batch of {} samples, expected at least 1", o.batch);
  const Shape image = o.shape.empty() ? entry.image : Shape(o.shape);
  const auto model = models::build_model(o.model, o.classes, image);
  const Type images{image.batched(o.batch), o.precision == "f64" ? DType::F64 : DType::F32};
  const Mode mode = o.mode == "eval" ? Mode::Eval : Mode::Train;
  check(
      !o.json || !(o.summary || o.plan || o.parameters), "inspect",
      "--json has the modules and the parameters, and no plan: expected it without --summary, --plan and --parameters");
  if (o.parameters) print_parameters(*model, images.dtype);
  const auto summary = [&] {
    return nn::summarize(
        *model, [&](Value x) { return (*model)(x); }, images, mode);
  };
  if (o.json) {
    print_json(*model, summary(), images.dtype);
    return;
  }
  if (o.summary || !(o.parameters || o.plan)) fmt::print("{}", summary().str());
  if (o.plan) check_memory(summary());
  if (o.plan) print_plan(*model, images, mode, {.bf16 = o.precision == "bf16"});
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
  command->add_option("--precision", o->precision, "Floating type; bf16: f32 with products and activations in bf16")
      ->check(CLI::IsMember({"f32", "f64", "bf16"}))
      ->capture_default_str();
  command->add_option("--mode", o->mode, "With gradient, or evaluation")
      ->check(CLI::IsMember({"train", "eval"}))
      ->capture_default_str();
  command->add_flag("--summary", o->summary,
                    "Modules with output shapes, parameters, FLOPs, bytes (unless told otherwise)");
  command->add_flag("--plan", o->plan,
                    "Steps of the compiled plan with a cross entropy loss: kernels, layouts, memory");
  command->add_flag("--parameters", o->parameters, "Names, types and shapes of parameters and buffers");
  command->add_flag("--json", o->json, "One JSON object with modules and parameters, instead of text");
  command->callback([o] { inspect(*o); });
}

}  // namespace lockstep::tools
