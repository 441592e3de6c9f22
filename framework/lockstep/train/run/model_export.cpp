#include "lockstep/train/run/model_export.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/onnx/document.h"
#include "lockstep/onnx/export.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/report/json_text.h"
#include "lockstep/train/report/result_line.h"
#include "lockstep/train/run/prediction.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExportSite = "onnx";
constexpr const char* kOutputName = "prediction";

// Values by the full names of parameters and tables.
class Weights {
 public:
  Weights(Trainer& trainer, const nn::Module& module) : trainer_(trainer) {
    for (const NamedParameter& named : module.named_parameters()) source_.names[named.parameter] = named.name;
    for (const NamedTable& named : nn::named_tables(module)) source_.tables[named.table] = named.name;
    if (source_.tables.empty()) return;
    for (io::NamedTensor& tensor : trainer.state()) state_.emplace(std::move(tensor.name), std::move(tensor.tensor));
  }
  onnx::ExportSource source(const std::string& name) {
    source_.name = name;
    source_.version = LOCKSTEP_VERSION;
    source_.weights = [this](const std::string& of) {
      auto found = state_.extract("model/" + of);  // each value is asked for once
      return found.empty() ? trainer_.model().parameters().read(of) : std::move(found.mapped());
    };
    return source_;
  }

 private:
  Trainer& trainer_;
  onnx::ExportSource source_;
  std::map<std::string, Tensor> state_;  // of a model with sparse tables
};

void write_example(const RunParts& run, const data::Batch& batch, const std::vector<std::string>& inputs) {
  const fs::path folder = run.facts.options.onnx_example;
  fs::create_directories(folder);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    io::replace_file(folder / formatted("input_{}.pb", i), onnx::tensor_message(inputs[i], batch.at(inputs[i])).bytes(),
                     kExportSite);
  io::replace_file(folder / "output_0.pb", onnx::tensor_message(kOutputName, run.trainer.predict(batch)).bytes(),
                   kExportSite);
}

// The texts among the program's own options, one of which may name the file of the model: --model net.onnx.
std::vector<std::string> named_files(const RunFacts& facts) {
  std::vector<std::string> files;
  const nlohmann::json own = parse_json(facts.program);
  for (const auto& [name, value] : own.items()) {
    if (value.is_string()) files.push_back(value.get<std::string>());
  }
  return files;
}

}  // namespace

void export_model(const RunParts& run, const nn::Module& module, const plan::ModelFunction& model) {
  const Options& options = run.facts.options;
  const data::Batch batch = first_group(run);
  std::map<std::string, Type> types;
  for (const data::Field& field : run.facts.data.fields())
    types[field.name] = {field.shape.batched(batch.samples()), field.dtype};
  Graph graph(Mode::Eval, run.facts.dtype, options.seed);
  const Value output = prediction_alone(model)(plan::Inputs(graph, types)).prediction;
  Weights weights(run.trainer, module);
  // C source is written from the model of ONNX, which lies beside it.
  fs::path file = options.onnx;
  const bool as_c = file.extension() == ".c";
  if (as_c) file = onnx::onnx_beside(file, named_files(run.facts));
  const std::string bytes = onnx::export_graph(graph, output, kOutputName, weights.source(run.facts.name));
  io::replace_file(file, bytes, kExportSite);
  log()->info("onnx: {}: {} bytes, for batches of {} samples", file.string(), bytes.size(), batch.samples());
  if (options.json) print_result({{"file", file.string()}, {"bytes", bytes.size()}, {"batch", batch.samples()}});
  if (as_c) {
    const onnx::CSource source = onnx::write_c_source(file, options.onnx);
    log()->info("c: {}, with its header and its weights", options.onnx);
    if (options.json) print_result(result_of(source, options.onnx));
  }
  const std::vector<std::string> inputs = onnx::exported_inputs(graph, output);
  if (!options.onnx_example.empty()) write_example(run, batch, inputs);
}

nlohmann::ordered_json result_of(const onnx::CSource& source, const std::string& path) {
  return {{"file", path},
          {"bytes", source.source.size()},
          {"weights_bytes", source.weights.size()},
          {"memory_bytes", source.memory}};
}

}  // namespace lockstep::train
