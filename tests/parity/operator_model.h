// One op as a whole model: its operands are parameters, so that their gradients can be read. What it computes is
// weighted with the batch's "cotangent" of the same shape and averaged over samples; a loss is taken as it is, with the
// batch's "label" or "target".
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "lockstep/io/named_tensor.h"
#include "lockstep/nn/module.h"
#include "lockstep/plan/trace.h"
#include "tests/parity/axis_operators.h"
#include "tests/parity/loss_model.h"

namespace lockstep::parity {

class OperatorModel : public nn::Module {
 public:
  // `request` names the op and its options; parameters take names and shapes from `operands`. A norm's own
  // parameters lie under "bn.", those of a recurrent layer under "rnn.", those of attention under "layer.".
  OperatorModel(const nlohmann::json& request, std::span<const io::NamedTensor> operands);
  plan::Traced operator()(
      const plan::Inputs& in) const;  // observes "output", which is also the prediction, unless it is a loss
  bool is_loss() const;

 private:
  Value apply(Graph& graph) const;
  Value transform(Value x) const;  // Fourier transforms
  Value recurrent(Value x) const;
  void add_recurrent();
  Value operand(Graph& graph, const std::string& name) const;  // invalid where there is none
  std::int64_t option(const char* name, std::int64_t otherwise) const { return request_.value(name, otherwise); }

  nlohmann::json request_;
  std::map<std::string, Parameter*> operands_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<nn::Module> recurrent_, attention_;
};

}  // namespace lockstep::parity
