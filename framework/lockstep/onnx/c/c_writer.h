// The bodies of the functions that compute one sample, and before that what depends on weights alone, under
// construction: statements in the order of the graph's nodes, with the places of values in memory. Each function below
// writes the ops of its subject and returns true, or writes nothing and returns false for another op.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep::onnx {

class CBody {
 public:
  // Whether the statements that follow depend on the weights alone, and are computed once.
  void set_once(bool once) { once_ = once; }
  bool is_of_sample() const { return !once_; }
  void add(const std::string& statement) { (once_ ? once_text_ : text_) += "  " + statement + "\n"; }
  // Adds a statement that needs a helper function of c_helpers.h.
  void call(const std::string& helper, const std::string& arguments) {
    need(helper);
    add(helper + "(" + arguments + ");");
  }
  void need(const std::string& helper) { helpers_.insert(helper); }
  // Returns the name of a table of whole numbers, or of reals.
  std::string table(const std::vector<std::int64_t>& values);
  std::string table(const std::vector<double>& values);
  // Makes the scratch memory at least this long.
  void scratch(std::int64_t reals) { scratch_ = std::max(scratch_, reals); }

  const std::string& text() const { return text_; }
  const std::string& once_text() const { return once_text_; }
  const std::string& tables() const { return tables_; }
  const std::set<std::string>& helpers() const { return helpers_; }
  std::int64_t scratch() const { return scratch_; }

 private:
  bool once_ = false;
  std::string text_, once_text_, tables_;
  std::map<std::string, std::string> names_;  // of tables, by their text
  std::set<std::string> helpers_;
  std::int64_t scratch_ = 0;
};

struct CNode {
  CBody& body;
  const Graph& graph;
  const Node& node;
  std::vector<std::string> inputs;   // expressions that point at the values
  std::vector<std::string> outputs;  // the same; "" is not read
  std::vector<Type> types;           // of the inputs

  const Shape& shape(std::size_t output = 0) const { return node.outputs[output].shape; }
  // Throws Error that names the node unless `condition` holds.
  void require(bool condition, std::string_view what) const;
};

bool write_c_windows(const CNode& n);    // convolutions, pooling, resampling
bool write_c_products(const CNode& n);   // linear layers, products of matrices, rows of tables, recurrent layers
bool write_c_norms(const CNode& n);      // normalisations, softmax, reductions
bool write_c_moves(const CNode& n);      // permutations, parts, joins, padding, conversions, fills
bool write_c_pointwise(const CNode& n);  // expressions of the pointwise algebra

// A floating constant as C has it.
std::string c_number(double value);
// "1, 2, 3".
std::string c_list(const std::vector<std::int64_t>& values);
// The distances of neighbours along each axis of a dense value.
std::vector<std::int64_t> dense_strides(const Shape& shape);

}  // namespace lockstep::onnx
