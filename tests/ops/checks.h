// Runs rows of the table: a model whose parameters are the row's operands and whose loss is a random linear functional
// of the output, so that every element of the output counts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/plan/compiled_model.h"
#include "tests/ops/row.h"

namespace lockstep::optest {

class RowModel {
 public:
  RowModel(const Row& row, DType dtype);

  const std::vector<Array>& operands() const { return operands_; }
  void write(std::size_t operand, const Array& values);
  void run();  // forward and backward
  double loss() const { return plan_->loss(); }
  Array output() const;
  Array gradient(std::size_t operand) const;
  bool differentiated(std::size_t operand) const { return parameters_[operand].trainable; }
  // Names of the ops that the row's own trace holds, without its gradient.
  std::vector<std::string> ops() const;

 private:
  Value trace(Graph& graph) const;

  const Row& row_;
  DType dtype_;
  std::vector<Array> operands_;
  std::vector<Parameter> parameters_;  // the operands, then the functional's coefficients
  std::unique_ptr<plan::CompiledModel> model_;
  plan::Plan* plan_ = nullptr;
};

}  // namespace lockstep::optest
