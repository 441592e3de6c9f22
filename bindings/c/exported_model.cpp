#include "bindings/c/exported_model.h"

#include <map>
#include <string>

#include "lockstep/graph/graph.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/onnx/c/c_source.h"
#include "lockstep/onnx/export.h"

namespace lockstep::bindings {

bool is_exported(const std::filesystem::path& path) { return path.extension() == ".onnx" || path.extension() == ".c"; }

void export_model(const DescribedModel& model, const Inference& inference, const std::filesystem::path& path) {
  const bool as_c = path.extension() == ".c";
  const std::filesystem::path file = as_c ? onnx::onnx_beside(path, {model.onnx_file()}) : path;
  std::map<std::string, Tensor> weights;
  for (io::NamedTensor& each : inference.weights()) weights.emplace(each.name, std::move(each.tensor));
  Graph graph(Mode::Eval, DType::F32);
  const Value output = model.forward(graph.input(kInput, {model.input().batched(1), DType::F32}));
  onnx::ExportSource source{.name = path.stem(), .version = LOCKSTEP_VERSION};
  for (const NamedParameter& named : model.module().named_parameters()) source.names[named.parameter] = named.name;
  source.weights = [&](const std::string& name) {
    const Tensor& tensor = weights.at(name);
    return tensor.dtype() == DType::F64 ? tensor.to(DType::F32) : tensor.clone();
  };
  io::replace_file(file, onnx::export_graph(graph, output, "output", source), "model");
  if (as_c) onnx::write_c_source(file, path);
}

}  // namespace lockstep::bindings
