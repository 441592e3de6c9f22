// One layer of an LSTM (Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gates of Gers et
// al. (2000)) or of a GRU (Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014)), over all
// steps of a sequence at once, in PyTorch's formulas and order of gates. The products with the input are one linear
// layer over all steps; the recurrence is an op with kernels of its own, from whose gradient the weights' gradients are
// one product over all steps again. A layer can be differentiated once. nn/recurrent.h has the modules.
//
// With x, y per step, s the logistic function and * element by element:
//   LSTM  (i, f, g, o) = W_ih x + b_ih + W_hh h + b_hh,  c' = s(f) * c + s(i) * tanh(g),  h' = s(o) * tanh(c')
//   GRU   r, z = s(W_ih x + b_ih + W_hh h + b_hh),  n = tanh(W_in x + b_in + r * (W_hn h + b_hn)),
//         h' = (1 - z) * n + z * h
#pragma once

#include <span>

#include "lockstep/graph/graph.h"

namespace lockstep {

enum class RecurrentCell : std::uint8_t { Lstm, Gru };

// The inputs and outputs of the ops below are these in this order, those of `directions` directions one after the
// other; the second direction runs from the last step to the first. G = 4 H for an LSTM, 3 H for a GRU.
struct RecurrentOptions {
  RecurrentCell cell = RecurrentCell::Lstm;
  int directions = 1;
  bool bias = false;     // of W_hh in the op: a GRU's alone, as an LSTM's is added with the products of the input
  bool initial = false;  // initial states are given; else they are 0
  std::int64_t gates() const { return cell == RecurrentCell::Lstm ? 4 : 3; }
  bool lstm() const { return cell == RecurrentCell::Lstm; }
};

// The samples of a step lie together, and the steps one after the other, as the recurrence takes them. Per direction:
// products of the input (T, N, G), W_hh (G, H), [its bias (G)]; then [h (N, D H)], [c, an LSTM's].
// -> y (T, N, D H), the last h (N, D H), [the last c], then values for the gradient: per direction the gates (T, N, G);
// and (T, N, D H), an LSTM's c or a GRU's W_hn h + b_hn.
class RecurrentOp : public Op {
 public:
  explicit RecurrentOp(RecurrentOptions options) : options_(options) {}
  const RecurrentOptions& options() const { return options_; }
  std::string_view name() const override { return options_.lstm() ? "lstm" : "gru"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  RecurrentOptions options_;
};

// Per direction W_hh and the gates; y, the last output of RecurrentOp, [h], [c]; then the gradients by y, h, [c], as
// far as they are there.
// -> per direction the gradients of the products of the input (T, N, G), of the products of h (T, N, G; of a GRU alone,
// an LSTM's are the same) and the h before each step (T, N, H); then those of the initial [h], [c].
class RecurrentGradientOp : public Op {
 public:
  struct Given {
    bool y, h, c;
  };
  RecurrentGradientOp(RecurrentOptions options, Given given) : options_(options), given_(given) {}
  const RecurrentOptions& options() const { return options_; }
  Given given() const { return given_; }
  std::string_view name() const override { return options_.lstm() ? "lstm_gradient" : "gru_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  RecurrentOptions options_;
  Given given_;
};

// The parameters of one direction: weight_ih (G, F), weight_hh (G, H) and both biases (G), or none.
struct RecurrentWeights {
  Value weight_ih, weight_hh, bias_ih = {}, bias_hh = {};
};

struct RecurrentOutputs {
  Value y;  // (N, T, D H), h after every step; the directions side by side
  Value h;  // (N, D H), after the last step of each direction
  Value c;  // (N, D H), of an LSTM
};

// Run one layer over x (N, T, F), in one direction or two. h and c (N, D H) are the states before the first step; empty
// ones are 0, an LSTM has both or none. States are f32 also where products are computed in bf16. Throw Error where
// shapes or types do not fit.
RecurrentOutputs lstm(Value x, std::span<const RecurrentWeights> directions, Value h = {}, Value c = {});
RecurrentOutputs gru(Value x, std::span<const RecurrentWeights> directions, Value h = {});
// The same of x (T, N, F), with y (T, N, D H): layers that follow each other need no copies between them.
RecurrentOutputs lstm_steps_first(Value x, std::span<const RecurrentWeights> directions, Value h = {}, Value c = {});
RecurrentOutputs gru_steps_first(Value x, std::span<const RecurrentWeights> directions, Value h = {});

}  // namespace lockstep
