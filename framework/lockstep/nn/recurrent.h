// LSTM and GRU over sequences x (N, T, features), as PyTorch's with batch_first: parameters have PyTorch's names,
// shapes, order of gates and initial values (weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with "_reverse" for
// the second direction). Between layers the results are dropped out as nn::Dropout does. ops/recurrent.h has the
// formulas. A call throws Error with the layer's module path where shapes do not fit. One thread traces a model.
#pragma once

#include <vector>

#include "lockstep/nn/child.h"
#include "lockstep/ops/recurrent.h"

namespace lockstep::nn {

struct RecurrentConfig {
  std::int64_t in, hidden;
  std::int64_t layers = 1;
  bool bias = true;
  double dropout = 0;  // between layers, in [0, 1)
  bool bidirectional = false;
};

// The layers of an LSTM or a GRU, with their parameters.
class RecurrentLayers : public Module {
 public:
  using Config = RecurrentConfig;

 protected:
  RecurrentLayers(RecurrentCell cell, RecurrentConfig config);
  // The outputs of all layers, the last one's y, as (N, T, D H), being the result; `h` and `c` are initial states by
  // layer, or empty.
  std::vector<RecurrentOutputs> run(Value x, const std::vector<Value>& h, const std::vector<Value>& c) const;

 private:
  struct Direction {
    Parameter *weight_ih, *weight_hh, *bias_ih, *bias_hh;  // biases may be null
  };
  Direction add_direction(const std::string& suffix, std::int64_t in);
  Value dropped(Value x, std::size_t layer) const;  // in front of a layer

  RecurrentCell cell_;
  RecurrentConfig config_;
  std::vector<std::vector<Direction>> layers_;
};

// States are given and returned by layer, each (N, D hidden) with D directions side by side: PyTorch's h_n[D l + d] is
// columns d hidden to (d + 1) hidden of layer l's.
class LSTM : public RecurrentLayers {
 public:
  struct State {
    Value h, c;
  };
  struct Output {
    Value y;                    // (N, T, D hidden), of the last layer
    std::vector<State> states;  // of each layer, after its last step
  };
  explicit LSTM(RecurrentConfig config) : RecurrentLayers(RecurrentCell::Lstm, config) {}
  // `initial` has a state per layer, or is empty for zeros.
  Output operator()(Value x, const std::vector<State>& initial = {}) const;
};

class GRU : public RecurrentLayers {
 public:
  struct Output {
    Value y;
    std::vector<Value> states;
  };
  explicit GRU(RecurrentConfig config) : RecurrentLayers(RecurrentCell::Gru, config) {}
  Output operator()(Value x, const std::vector<Value>& initial = {}) const;
};

}  // namespace lockstep::nn
