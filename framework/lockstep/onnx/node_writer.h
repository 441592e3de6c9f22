// One node of a traced graph, to be written as nodes of ONNX. Each function below writes the ops of its subject and
// returns true, or writes nothing and returns false for another op. They throw Error, with op and module path, for an
// op of theirs with options that ONNX's operators do not have.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/onnx/document.h"

namespace lockstep::onnx {

struct NodeWriter {
  Document& document;
  const Graph& graph;
  const Node& node;
  std::vector<std::string> inputs;  // names
  std::vector<Type> types;          // of the inputs
  std::string output;               // the name of output 0, the only one that is read unless the op is a split
  std::vector<std::string> outputs;

  std::function<std::string(Value)> name_of;  // of any value on which the node depends

  const Shape& shape() const { return node.outputs[0].shape; }
  DType dtype() const { return node.outputs[0].dtype; }
  // Throws Error unless `condition` holds; `what` is what ONNX does not have.
  void require(bool condition, std::string_view what) const;
};

bool write_windows(const NodeWriter& w);    // convolutions, pooling, resampling
bool write_products(const NodeWriter& w);   // linear layers, products of matrices, embeddings
bool write_norms(const NodeWriter& w);      // batch, layer, RMS and group norm, softmax
bool write_shapes(const NodeWriter& w);     // reshape, permute, slices, padding, concat, split, reductions, fills
bool write_pointwise(const NodeWriter& w);  // expressions of the pointwise algebra
bool write_attention(const NodeWriter& w);  // and rotary positions
bool write_recurrent(const NodeWriter& w);  // LSTM, GRU
bool write_spectra(const NodeWriter& w);    // Fourier transforms, products of spectra
bool write_bags(const NodeWriter& w);       // bags of rows, products of pairs, numbers from integers

// The values of which a node is written: its inputs, and of a recurrent layer, whose op here reads products of the
// input, for each product x (T N, F), weight_ih (G, F) and its bias, if there is one. Nothing else of the graph is
// written.
std::vector<Value> sources_of(const Graph& graph, const Node& node);

}  // namespace lockstep::onnx
