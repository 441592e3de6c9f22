// One node of a traced graph, to be written as nodes of ONNX. Each function below writes the ops of its subject and
// returns true, or writes nothing and returns false for another op. They throw Error, with op and module path, for an
// op of theirs with options that ONNX's operators do not have.
#pragma once

#include <string>
#include <vector>

#include "lockstep/graph/graph.h"
#include "tools/onnx/document.h"

namespace lockstep::onnx {

struct NodeWriter {
  Document& document;
  const Node& node;
  std::vector<std::string> inputs;  // names
  std::vector<Type> types;          // of the inputs
  std::string output;               // the name of output 0, the only one that is read unless the op is a split
  std::vector<std::string> outputs;

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
bool write_attention(const NodeWriter& w);

}  // namespace lockstep::onnx
