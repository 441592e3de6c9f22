#include "lockstep/train/callbacks/write_tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lockstep/plan/compiled_model.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::train {
namespace {

// Returns a table of Markdown, which the text plugin shows. A vertical bar would end a cell.
std::string markdown_table(const nlohmann::ordered_json& values) {
  std::string text = "| option | value |\n| --- | --- |\n";
  for (const auto& item : values.items()) {
    std::string value = item.value().is_string() ? item.value().get<std::string>() : item.value().dump();
    std::ranges::replace(value, '|', '/');
    std::ranges::replace(value, '\n', ' ');
    text += fmt::format("| {} | {} |\n", item.key(), value);
  }
  return text;
}

}  // namespace

void WriteTensorboard::begin_run(std::int64_t step) {
  if (TensorboardWriter* file = files_.tensorboard()) file->text(step, "options", markdown_table(parameters_));
}

void WriteTensorboard::after_step(const StepEvent& event, Orders& /*orders*/) {
  if (event.epoch_ends || event.run_ends) write_weights(event.step);
}

void WriteTensorboard::end_epoch(const EpochEvent& event, Orders& /*orders*/) {
  if (event.stream_ended) write_weights(event.step);
}

void WriteTensorboard::write_weights(std::int64_t step) {
  const plan::ParameterStore& store = trainer_.model().parameters();  // called on all ranks: it settles late updates
  TensorboardWriter* file = files_.tensorboard();
  if (file == nullptr) return;
  for (const auto& [name, parameter] : store.parameters()) {
    if (parameter->is_integer || !store.has_gradient(parameter)) continue;
    if (parameter->shape.elements() > kLargest) continue;
    const Tensor values = store.read(name).to(DType::F64);
    file->histogram(step, "weights/" + name, values.data<double>());
  }
}

}  // namespace lockstep::train
