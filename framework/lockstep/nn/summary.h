// Summarises a model from its trace, without running it: a row per module in the order of execution, with output shape,
// parameters, FLOPs (a multiply-add counts as two) and bytes of the values that the module makes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/nn/module.h"

namespace lockstep::nn {

// One row: neighbouring nodes that one module traced. A module that is called twice has two rows; its parameters count
// in the first.
struct SummaryRow {
  std::string path;  // "(model)" outside of all modules
  std::string ops;   // "conv2d", or "relu, max_pool2d" if there are several
  Type output;       // of the last node
  std::int64_t parameters = 0;
  double flops = 0;        // for the whole batch
  std::int64_t bytes = 0;  // of the outputs; views take none
};

struct Summary {
  std::vector<SummaryRow> rows;
  std::int64_t batch = 0;
  std::int64_t parameters = 0;  // elements without buffers; tied ones count once, unused ones count too
  std::int64_t trainable = 0;
  std::int64_t buffers = 0;      // elements of running statistics and counters
  std::int64_t state_bytes = 0;  // of parameters and buffers
  std::int64_t activation_bytes = 0;
  double flops = 0;

  double flops_per_sample() const { return batch > 0 ? flops / static_cast<double>(batch) : 0; }
  std::string str() const;  // the table and its totals
};

// Summarises a graph in which this model was traced. The first dimension of the first input is the batch.
Summary summarize(const Module& model, const Graph& graph);

// Traces `forward` on an input of this type and summarises the graph. Throws Error if the model cannot take the input.
Summary summarize(const Module& model, const std::function<Value(Value)>& forward, const Type& input,
                  Mode mode = Mode::Eval);

}  // namespace lockstep::nn
