// Writes a traced graph as an ONNX model, which onnxruntime, OpenVINO, TensorRT, PyTorch's users and others read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/graph/graph.h"
#include "lockstep/graph/table.h"

namespace lockstep::onnx {

struct ExportSource {
  std::string name;                                        // of the model
  std::string version;                                     // of Lockstep
  std::map<const Parameter*, std::string> names;           // full names of the parameters
  std::map<const Table*, std::string> tables = {};         // and of sparse tables
  std::function<Tensor(const std::string& name)> weights;  // the values of a parameter, or of a table
};

// Returns the bytes of the file: the nodes on which `output` depends, in a graph that was traced for evaluation, with
// the inputs under their names, the parameters under torchvision's (with "_weight" at its end where an input has the
// same), and the result as `output_name`. The sizes are those of the trace. Throws Error that names op and module for
// what ONNX has no operators for.
std::string export_graph(const Graph& graph, Value output, const std::string& output_name, const ExportSource& source);

// Returns the names of the inputs on which `output` depends, in the order in which the file has them.
std::vector<std::string> exported_inputs(const Graph& graph, Value output);

}  // namespace lockstep::onnx
