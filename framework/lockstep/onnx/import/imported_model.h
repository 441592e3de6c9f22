// A model that is read from a file of ONNX, as PyTorch and others export it: a module whose call traces the file's
// nodes as ops, so that it can be evaluated, trained further, saved and exported like any other model. Floating tensors
// of the file with one dimension or more are its parameters, under their names ("layer1.0.conv1.weight"), with the
// values of the file as initial values; batch norms compute with the statistics of the batch in training. Constants of
// the file stay constants. One thread traces a model.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/nn/child.h"
#include "lockstep/onnx/import/model_file.h"

namespace lockstep::onnx {

struct Tracing;

// The nodes of a file and the parameters that they read, which a module owns: ImportedModel, or a module of your own.
class ImportedGraph {
 public:
  // Adds a parameter to the owner itself: its add().
  using Add = std::function<Parameter&(std::string name, Parameter parameter)>;

  // Reads the file, and gives `owner`, which outlives this object, its parameters. Throws Error for a file that is
  // damaged, and for operators or attributes that have no form here, with the name of the node.
  ImportedGraph(const std::filesystem::path& file, nn::Module& owner, const Add& add);
  ~ImportedGraph();

  // Inputs and outputs in the order of the file: name, and sizes, of which -1 stands for any.
  const std::vector<FileValue>& inputs() const { return file_.inputs; }
  const std::vector<FileValue>& outputs() const { return file_.outputs; }

  // The type of the tensor of the file from which a parameter has its initial values: F32 or F64. F32 of a parameter
  // that is none of this graph, or a counter.
  DType type_of(const Parameter& parameter) const;

  // Traces the nodes on one value per input, whole numbers being i32, and returns one per output. The number of samples
  // need not be that of the file. Throws Error that names the node where shapes do not fit.
  std::vector<Value> trace(const std::vector<Value>& inputs) const;

 private:
  class Part;

  void add_parameters();
  void add_parameter(const std::string& name, const FileTensor& tensor, Role role);
  void add_counters();
  Parameter& add_at(const std::string& name, Parameter parameter);
  void trace_nodes(Tracing& tracing, const std::vector<Value>& inputs) const;

  ModelFile file_;
  nn::Module& owner_;
  Add add_;
  std::map<std::string, std::unique_ptr<nn::Child<Part>>> parts_;  // by path
  std::map<std::string, const Parameter*> parameters_;             // by the name in the file
  std::map<const Parameter*, DType> types_;                        // see type_of()
  std::map<std::string, const Parameter*> counters_;               // see Tracing
};

// Returns the parameters of the file's model in its types, without numbers of updates of batch norms. Throws as
// ImportedGraph does.
std::vector<io::NamedTensor> initial_weights(const std::filesystem::path& file);

class ImportedModel : public nn::Module {
 public:
  // Throws as ImportedGraph does.
  explicit ImportedModel(const std::filesystem::path& file);
  const ImportedGraph& graph() const { return graph_; }

  std::vector<Value> operator()(const std::vector<Value>& inputs) const { return graph_.trace(inputs); }
  // The same for a model with one input; returns the first output.
  Value operator()(Value input) const { return graph_.trace({input}).front(); }

 private:
  ImportedGraph graph_;
};

}  // namespace lockstep::onnx
