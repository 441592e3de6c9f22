// The traced program: nodes in execution order. A trace builds it by running the model's C++ once per (shapes, mode,
// precision); passes of the plan extend it. One thread at a time. It cannot be moved, as Values point at it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/graph/collective.h"
#include "lockstep/graph/op.h"
#include "lockstep/graph/parameter.h"

namespace lockstep {

enum class Mode : std::uint8_t { Train, Eval };

// The ranks over which a graph's collective nodes sum. Without a collective each batch norm uses the samples of its own
// part alone.
struct Synchronisation {
  std::shared_ptr<Collective> collective = {};
  bool all_norms = false;  // every batch norm of the model is synchronised, whatever its own options are
};

struct Node {
  enum class Kind : std::uint8_t { Op, Input, Parameter };
  Kind kind = Kind::Op;
  std::shared_ptr<const Op> op;          // Kind::Op
  const Parameter* parameter = nullptr;  // Kind::Parameter
  std::string path;                      // module path, "(model)" outside of all modules; or the name of the input
  int block = 0;                         // the unit of recomputation that it belongs to; 0: none
  std::vector<Value> inputs;
  std::vector<Type> outputs;
  std::string remark = {};  // a pass's reason for leaving the node as it is, for `lockstep inspect`
};

// An update of running statistics by batch statistics: after a step, mean and variance move towards those of the whole
// global batch, computed from `sums` (f64: sum of x per channel, then sum of x^2), added over shards and ranks.
struct RunningStatistics {
  const Parameter* mean;
  const Parameter* variance;
  const Parameter* batches;  // counts updates, as PyTorch's num_batches_tracked
  double momentum;
  std::int64_t per_sample;  // elements per channel and sample
  Value sums;
  std::string path = {};      // the norm's module path
  bool synchronised = false;  // normalises by the samples of all ranks, not by those of one part
};

class Graph {
 public:
  // `matrix_dtype` is the type in which products and convolutions compute: `dtype`, or BF16 beside F32.
  Graph(Mode mode, DType dtype, std::uint64_t seed, DType matrix_dtype) : options_{mode, dtype, matrix_dtype, seed} {}
  Graph(Mode mode, DType dtype, std::uint64_t seed = 0) : Graph(mode, dtype, seed, dtype) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Mode mode() const { return options_.mode; }
  bool training() const { return mode() == Mode::Train; }
  DType dtype() const { return options_.dtype; }  // of parameters
  DType matrix_dtype() const { return options_.matrix_dtype; }
  std::uint64_t seed() const { return options_.seed; }  // of the run, for ops that draw random numbers
  const Synchronisation& synchronisation() const { return synchronisation_; }
  void bind(Synchronisation synchronisation) { synchronisation_ = std::move(synchronisation); }

  // Returns the input of this name; the same name gives the same value. Throws Error for another type than before.
  Value input(const std::string& name, Type type);
  // Returns the value of a parameter; the same parameter gives the same value.
  Value parameter(const Parameter& parameter);
  // Appends a node and returns all its outputs. Throws Error where the inputs do not fit the op, or belong to another
  // graph.
  std::vector<Value> apply(std::shared_ptr<const Op> op, std::vector<Value> inputs);

  // Run-time inputs for ops: the number of the step (i64 scalar) and the ids of the samples (i64, one per sample of a
  // batch). A field of a batch cannot have these names, as they begin with '@'.
  static constexpr const char* kStep = "@step";
  static constexpr const char* kSampleIds = "@sample_ids";
  Value step() { return input(kStep, {Shape{}, DType::I64}); }
  Value sample_ids(std::int64_t samples) { return input(kSampleIds, {Shape{samples}, DType::I64}); }

  // Returns the key of the random numbers that an op draws at this call site, a module path. It depends on the seed,
  // the site and the number of keys that were taken there before: a module that is called twice, and two ops at one
  // site, draw other numbers each. Passes copy ops with their keys, so what is computed again draws the same numbers.
  std::uint64_t random_key(std::string_view call_site);

  // Sets the remark of the node that gives the value.
  void set_remark(Value v, std::string remark) {
    nodes_[static_cast<std::size_t>(v.node())].remark = std::move(remark);
  }

  // Keeps a value readable under its full name until a plan of the model runs again.
  void observe(const std::string& name, Value value);
  void add(RunningStatistics statistics) { statistics_.push_back(std::move(statistics)); }

  const std::vector<Node>& nodes() const { return nodes_; }
  // The handle of an output of an existing node.
  Value value(int node, int index) const { return {const_cast<Graph*>(this), node, index}; }
  const Node& node(Value v) const { return nodes_[static_cast<std::size_t>(v.node())]; }
  const std::map<std::string, Value>& observed() const { return observed_; }
  const std::vector<RunningStatistics>& statistics() const { return statistics_; }
  std::vector<RunningStatistics>& statistics() { return statistics_; }

  const std::string& path() const { return path_; }
  // Returns a graph of the same mode and types without nodes, for a pass.
  std::unique_ptr<Graph> empty_copy() const { return std::make_unique<Graph>(mode(), dtype(), seed(), matrix_dtype()); }

  // The nodes that are traced while a Block lives form one unit of recomputation: with Recompute::Blocks, a value that
  // no node outside the block reads is not kept for backward but computed again. A block inside a block belongs to the
  // outer block.
  class Block {
   public:
    explicit Block(Graph& graph) : Block(graph, graph.block_ != 0 ? graph.block_ : ++graph.blocks_) {}
    Block(Graph& graph, int number) : graph_(graph), saved_(std::exchange(graph.block_, number)) {}
    ~Block() { graph_.block_ = saved_; }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

   private:
    Graph& graph_;
    int saved_;
  };

  // Gives a module path to the nodes that are traced while the Scope lives.
  class Scope {
   public:
    Scope(Graph& graph, std::string path) : graph_(graph), saved_(std::exchange(graph.path_, std::move(path))) {}
    ~Scope() { graph_.path_ = std::move(saved_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::string saved_;
  };

 private:
  struct Options {
    Mode mode;
    DType dtype, matrix_dtype;
    std::uint64_t seed;
  };

  Options options_;
  Synchronisation synchronisation_;
  std::string path_;
  int block_ = 0, blocks_ = 0;
  std::vector<Node> nodes_;
  std::map<std::string, Value> inputs_, observed_;
  std::map<const Parameter*, Value> parameters_;
  std::vector<RunningStatistics> statistics_;
  std::map<std::string, std::uint64_t> keys_taken_;  // by call site
};

// Keeps `value` readable after a step, by Trainer::observed() and Predictor::observed(), and returns it. Its full name
// is the module path and `name`: "hidden" observed in the module layer1 is "layer1.hidden". Throws Error for an empty
// Value.
Value observe(const std::string& name, Value value);

// Applies an op with one output to inputs of one graph and returns the output. Throws as Graph::apply() does.
Value apply_op(std::shared_ptr<const Op> op, std::vector<Value> inputs);

}  // namespace lockstep
