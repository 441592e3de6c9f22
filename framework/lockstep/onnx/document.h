// An ONNX model under construction: nodes in execution order, initial values, inputs and outputs, with the numbers of
// fields of ONNX's onnx.proto3. Operators are those of version 13 of ONNX's set, which runtimes have had since 2021.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/graph/type.h"
#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {

using Attribute = std::pair<std::string, std::variant<std::int64_t, double, std::vector<std::int64_t>, std::string>>;

// With which the names of constants begin that are no weights of the model.
inline constexpr std::string_view kConstantName = "constant.";

class Document {
 public:
  // Reserves a name, which fresh() then does not return; false: it is reserved already.
  bool take(const std::string& name) { return taken_.insert(name).second; }
  // A name that no value has yet, and that is not reserved.
  std::string fresh(std::string_view hint = "t");
  // Appends a node with one output under this name, and returns the name; an empty name stands for a fresh one.
  std::string add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<Attribute>& attributes = {}, const std::string& output = "");
  void add(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
           const std::vector<Attribute>& attributes);
  // Adds a tensor under this name. Throws Error for a type that ONNX's weights do not have here (bf16).
  void initial(const std::string& name, const Tensor& tensor);
  // Return the name of a constant: of a number in a floating type, of a list of whole numbers, of a tensor.
  std::string scalar(double value, DType dtype);
  std::string list(const std::vector<std::int64_t>& values);
  std::string constant(const Tensor& tensor);
  void input(const std::string& name, const Type& type);
  void output(const std::string& name, const Type& type);
  // The nodes that follow get names that begin with this one.
  void set_path(std::string path) { path_ = std::move(path); }

  // Returns the bytes of the file. Throws Error where they are more than Protocol Buffers may have, 2 GiB.
  std::string finish(const std::string& name, const std::string& producer_version) const;

 private:
  Message graph_;
  std::string path_;
  std::map<std::string, std::string> scalars_;
  std::set<std::string> taken_;
  std::int64_t values_ = 0, nodes_ = 0;
};

// A tensor as a message of its own: the files input_0.pb and output_0.pb of ONNX's test data.
Message tensor_message(const std::string& name, const Tensor& tensor);

}  // namespace lockstep::onnx
