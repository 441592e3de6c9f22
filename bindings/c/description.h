// A model from its description in JSON (docs/c_and_fortran.md): shapes, network, loss, metrics. The result owns the
// network. One thread.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/nn/module.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/plan/trace.h"

namespace lockstep::bindings {

class JsonReader;

// The names of the fields of a batch.
inline constexpr const char* kInput = "input";
inline constexpr const char* kTarget = "target";

class DescribedModel {
 public:
  // Throws CodedError for a description that makes no model.
  explicit DescribedModel(const nlohmann::json& description);

  const std::string& text() const { return text_; }  // the description in one line
  const Shape& input() const { return input_; }      // of one sample
  const Shape& output() const { return output_; }
  const Shape& target() const { return target_; }
  DType dtype() const { return dtype_; }  // of weights, inputs and outputs
  DType target_type() const { return has_classes_ ? DType::I32 : dtype_; }
  bool has_classes() const { return has_classes_; }  // targets are the numbers of classes
  const nn::Module& module() const { return *module_; }
  // The file of ONNX from which the network is read; empty: there is none.
  const std::string& onnx_file() const { return onnx_file_; }
  std::vector<data::Field> fields() const;

  // The network alone; and what a trainer traces: loss, metrics and prediction.
  Value forward(Value input) const { return forward_(input).prediction; }
  plan::Traced trace(const plan::Inputs& in) const;

 private:
  struct Forward {
    Value prediction;
    Value penalty = {};  // added to the loss; empty: none
  };
  void describe_network(JsonReader& options);
  void describe_loss(JsonReader& options);
  void check_shapes() const;
  void check_output(const Value& prediction) const;

  std::string text_, onnx_file_;
  Shape input_, output_, target_;
  DType dtype_ = DType::F32;
  bool has_classes_ = false;
  std::string loss_;
  double delta_ = 1;
  std::vector<std::string> metrics_;
  std::unique_ptr<nn::Module> module_;
  std::function<Forward(Value)> forward_;
};

// Makes an update rule from "adam", or from JSON with the rule's name and options. Throws CodedError.
std::shared_ptr<optim::UpdateRule> rule_of(const char* text);

}  // namespace lockstep::bindings
