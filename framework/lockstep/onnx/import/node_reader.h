// One node of a file of ONNX, to be traced as ops of a graph. A reading turns a node with one operator into ops; the
// tables below list those of each subject. A value that a reading computes from constants alone is a constant again:
// sizes that a file computes from shapes are numbers while a graph is traced.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/format.h"
#include "lockstep/graph/graph.h"
#include "lockstep/onnx/import/model_file.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {

// The meaning of a name of the file in a trace: a value, a tensor, or a tensor that is a parameter.
struct Operand {
  Value value = {};
  FileTensor constant = {};
  const Parameter* parameter = nullptr;  // of `constant`
  // Where the axis with the samples has others in front of them: 5 of an axis (5 positions, samples) joined.
  std::int64_t in_front = 1;
};

using Operands = std::map<std::string, Operand>;

// The state that all nodes of a trace share.
struct Tracing {
  Graph& graph;
  std::int64_t operators;     // version of ONNX's set
  std::int64_t batch_before;  // samples for which the file was written; -1: any
  std::int64_t batch;         // and of this trace
  // The operands of a trace with as many samples as the file was written for; null: this trace has as many.
  const Operands* before = nullptr;
  // Numbers of updates of batch norms whose statistics are parameters, by the name of the norm's output.
  std::map<std::string, const Parameter*> counters = {};
  Operands operands = {};
};

class NodeReader {
 public:
  NodeReader(const FileNode& node, Tracing& tracing) : node_(node), tracing_(tracing) {}

  const FileNode& node() const { return node_; }
  Graph& graph() const { return tracing_.graph; }
  const Tracing& tracing() const { return tracing_; }
  std::int64_t operators() const { return tracing_.operators; }

  std::size_t inputs() const { return node_.inputs.size(); }
  bool has(std::size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  // Returns input i as a value of the graph, or an empty Value where it is left out. Throws Error for a constant that
  // is neither a parameter nor the same number everywhere.
  Value value(std::size_t i) const;
  // Returns the parameter that input i is, or nullptr.
  const Parameter* parameter(std::size_t i) const { return operand(i).parameter; }
  // Returns input i as a tensor, or null if it is known only when the model runs.
  FileTensor constant(std::size_t i) const { return has(i) ? operand(i).constant : nullptr; }
  // The whole numbers, and the floating number, of an input that has to be a constant; `what` names it.
  Numbers wholes(std::size_t i, std::string_view what) const;
  double real(std::size_t i, std::string_view what) const;
  // Whether input i is a constant of one floating element, which is then in `number`.
  bool is_number(std::size_t i, double& number) const;
  // The shape of an input of any kind.
  Shape shape(std::size_t i) const;
  // Input i in the trace with as many samples as the file was written for; null: this is such a trace.
  const Operand* before(std::size_t i) const;
  std::int64_t in_front(std::size_t i) const { return operand(i).in_front; }
  // Whether input i is a constant with 0 in all elements.
  bool is_zero(std::size_t i) const;

  bool has_attribute(const std::string& name) const { return node_.attributes.contains(name); }
  std::int64_t whole_attribute(const std::string& name, std::int64_t otherwise) const;
  double real_attribute(const std::string& name, double otherwise) const;
  Numbers wholes_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name, const std::string& otherwise) const;
  // Numbers that older versions have as an attribute and newer ones as input i; none if both are missing.
  Numbers wholes_of(std::size_t i, const std::string& attribute) const;

  // Sets an output; without `in_front` (see Operand) that of the inputs.
  void set(Value value, std::size_t output = 0, std::int64_t in_front = 0) const;
  void set_constant(Tensor tensor) const;

  // Throws Error that names the node.
  [[noreturn]] void refuse(std::string_view text) const;
  void require(bool condition, std::string_view text) const {
    if (!condition) refuse(text);
  }

 private:
  const Operand& operand(std::size_t i) const;

  const FileNode& node_;
  Tracing& tracing_;
};

struct Reading {
  std::string_view op;
  void (*read)(const NodeReader& reader);
  std::vector<std::string_view> attributes = {};  // that it understands
};

std::span<const Reading> constant_readings();   // of constants and shapes, from which sizes are computed
std::span<const Reading> pointwise_readings();  // functions of each element
std::span<const Reading> window_readings();     // convolutions, pooling, resampling
std::span<const Reading> product_readings();    // products of matrices, and recurrent layers
std::span<const Reading> norm_readings();       // normalisations and softmax
std::span<const Reading> shape_readings();      // shapes, parts along axes, joins
std::span<const Reading> element_readings();    // elements by their indices, repeated and padded
std::span<const Reading> reduction_readings();  // sums, means, greatest and least elements

// Computes a node whose inputs are all constants, if its operator is one with which sizes are computed; else returns
// false.
bool fold(const NodeReader& reader);
// Whether fold() has the operator.
bool is_folded(std::string_view op);

// Rules that nodes of values and of constants share. The sizes of a Reshape: 0 stands for those of x, one -1 for what
// is left.
Numbers resolved_sizes(const NodeReader& reader, const Shape& x, Numbers sizes);
// The shape of x without the axes of a Squeeze, and with those of an Unsqueeze.
Shape squeezed(const NodeReader& reader, const Shape& x);
Shape unsqueezed(const NodeReader& reader, const Shape& x);
// The elements that a Slice takes along each axis of x.
std::vector<AxisRange> ranges_of(const NodeReader& reader, const Shape& x);
// The order of the axes that a Transpose has.
std::vector<int> order_of(const NodeReader& reader, int rank);

// Returns the axis in [0, rank), of which a negative one counts from the end. Throws Error for another.
int axis_of(const NodeReader& reader, std::int64_t axis, int rank);

}  // namespace lockstep::onnx
