// The traced program: nodes in execution order. Built by running the model's C++ once per (shapes, mode, precision),
// then extended by the plan's passes. Not thread-safe; movable not, since Values point at it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/graph/collective.h"
#include "lockstep/graph/op.h"
#include "lockstep/graph/parameter.h"

namespace lockstep {

enum class Mode : std::uint8_t { Train, Eval };

// The ranks that a graph's collective nodes run on; without any, batch norms have their own samples alone.
struct Synchronisation {
  std::shared_ptr<Collective> collective = {};
  bool all_norms = false;  // every batch norm of the model, whatever its own options say
};

struct Node {
  enum class Kind : std::uint8_t { Op, Input, Parameter };
  Kind kind = Kind::Op;
  std::shared_ptr<const Op> op;          // Kind::Op
  const Parameter* parameter = nullptr;  // Kind::Parameter
  std::string place;                     // module path, "(model)" outside of all modules; or the name of the input
  int block = 0;                         // the unit of recomputation that it belongs to; 0: none
  std::vector<Value> inputs;
  std::vector<Type> outputs;
};

// Batch statistics on their way into running statistics: after a step, mean and variance move towards those of the
// whole global batch, computed from `sums` (f64: sum of x per channel, then sum of x^2), added over shards and ranks.
struct RunningStatistics {
  const Parameter* mean;
  const Parameter* variance;
  const Parameter* batches;  // counts updates, as PyTorch's num_batches_tracked
  double momentum;
  std::int64_t per_sample;  // elements per channel and sample
  Value sums;
  std::string place = {};     // the norm's module path
  bool synchronised = false;  // normalises by all ranks' samples, not by those of its own part
};

class Graph {
 public:
  // `matrix_dtype` is what products and convolutions compute in: `dtype`, or BF16 beside F32.
  Graph(Mode mode, DType dtype, std::uint64_t seed, DType matrix_dtype) : options_{mode, dtype, matrix_dtype, seed} {}
  Graph(Mode mode, DType dtype, std::uint64_t seed = 0) : Graph(mode, dtype, seed, dtype) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Mode mode() const { return options_.mode; }
  bool training() const { return mode() == Mode::Train; }
  DType dtype() const { return options_.dtype; }  // of parameters
  DType matrix_dtype() const { return options_.matrix_dtype; }
  std::uint64_t seed() const { return options_.seed; }  // the run's, for ops that draw random numbers
  const Synchronisation& synchronisation() const { return synchronisation_; }
  void bind(Synchronisation synchronisation) { synchronisation_ = std::move(synchronisation); }

  Value input(const std::string& name, Type type);  // the same name gives the same value; types must agree
  Value parameter(const Parameter& parameter);      // likewise by identity
  // Appends a node and returns all its outputs.
  std::vector<Value> apply(std::shared_ptr<const Op> op, std::vector<Value> inputs);

  // Run-time inputs that ops ask for by themselves: the step's number (i64 scalar) and the ids of the samples (i64, one
  // per sample of a batch). No field of a batch has a name like theirs.
  static constexpr const char* kStep = "@step";
  static constexpr const char* kSampleIds = "@sample_ids";
  Value step() { return input(kStep, {Shape{}, DType::I64}); }
  Value sample_ids(std::int64_t samples) { return input(kSampleIds, {Shape{samples}, DType::I64}); }

  // Keeps a value readable under its full name until a plan of the model runs again.
  void observe(const std::string& name, Value value);
  void add(RunningStatistics statistics) { statistics_.push_back(std::move(statistics)); }

  const std::vector<Node>& nodes() const { return nodes_; }
  // The handle of an output that is there.
  Value value(int node, int index) const { return {const_cast<Graph*>(this), node, index}; }
  const Node& node(Value v) const { return nodes_[static_cast<std::size_t>(v.node())]; }
  const std::map<std::string, Value>& observed() const { return observed_; }
  const std::vector<RunningStatistics>& statistics() const { return statistics_; }
  std::vector<RunningStatistics>& statistics() { return statistics_; }

  const std::string& place() const { return place_; }
  // A graph of the same mode and types without nodes, for passes.
  std::unique_ptr<Graph> empty_copy() const { return std::make_unique<Graph>(mode(), dtype(), seed(), matrix_dtype()); }

  // The nodes that are traced while it lives are one block: with recomputation of blocks, what no other node reads of
  // them is not kept for backward but computed again. A block inside a block belongs to the outer one.
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

  // Names the nodes that are traced while it lives.
  class Scope {
   public:
    Scope(Graph& graph, std::string place) : graph_(graph), saved_(std::exchange(graph.place_, std::move(place))) {}
    ~Scope() { graph_.place_ = std::move(saved_); }
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
  std::string place_;
  int block_ = 0, blocks_ = 0;
  std::vector<Node> nodes_;
  std::map<std::string, Value> inputs_, observed_;
  std::map<const Parameter*, Value> parameters_;
  std::vector<RunningStatistics> statistics_;
};

// Keeps `value` readable after a step, by Trainer::observed() and Predictor::observed(), and returns it. Its full name
// is that of a parameter in its place: "hidden" observed in the module layer1 is "layer1.hidden".
Value observe(const std::string& name, Value value);

// For ops with one output.
Value apply_op(std::shared_ptr<const Op> op, std::vector<Value> inputs);

}  // namespace lockstep
