// For the tests of GradientEngine: parameters without a model whose gradients are number(), and what a step makes of
// them, computed a second time from the canonical tree, the update rule and the samples alone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "lockstep/nn/init.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/gradient_engine.h"
#include "tests/mpi/reduction.h"

namespace lockstep::test {

struct EngineCase {
  parallel::Domains domains;
  std::int64_t shards = 0;
  DType dtype = DType::F32;
  std::int64_t bucket_bytes = 12'000;
  bool share = true;
  parallel::EngineOptions options = {};
  std::shared_ptr<optim::UpdateRule> rule = optim::sgd({.momentum = 0.9});
};

// By parameter; the last ones are the first whose gradients are final.
inline const std::vector<std::int64_t> kParameters{700, 1, 33, 2600, 90, 5003};

inline std::int64_t gradient_shift(std::size_t parameter, std::int64_t step) {
  return 10'000 * static_cast<std::int64_t>(parameter + 1) + 1'000'000 * step;
}

class EngineRig {
 public:
  static constexpr std::int64_t kStatistics = 6, kSums = static_cast<std::int64_t>(parallel::kOtherSums) + 1;

  explicit EngineRig(const EngineCase& c)
      : comm_(comm::Communicator::world()),
        where_(layout(c.shards)),
        dtype_(c.dtype),
        memory_(comm_, c.domains, c.share),
        parameters_(make_parameters()),
        store_(named(parameters_), {.dtype = c.dtype,
                                    .seed = 4,
                                    .gradient_slots = where_.my_slots(),
                                    .optimizer_states = static_cast<int>(c.rule->states().size()),
                                    .bucket_bytes = c.bucket_bytes,
                                    .memory = &memory_,
                                    .states_by_owner = c.options.shard_optimizer && c.domains.count() > 1}) {
    std::vector<const Parameter*> order;
    for (std::size_t p = parameters_.size(); p-- > 0;) order.push_back(&parameters_[p]);
    store_.allocate({}, order);
    updater_ = std::make_unique<parallel::Updater>(store_, c.rule, parallel::UpdaterOptions{});
    parallel::EngineOptions options = c.options;
    options.statistics = kStatistics;
    options.sums = 1;
    engine_ = std::make_unique<parallel::GradientEngine>(comm_, where_, memory_, store_, *updater_, options);
    engine_->fence();
  }

  static std::vector<Parameter> make_parameters() {
    std::vector<Parameter> all;
    for (const std::int64_t n : kParameters) all.push_back({.shape = Shape{n}, .initialize = nn::normal(0, 1)});
    return all;
  }
  static std::vector<NamedParameter> named(std::vector<Parameter>& parameters) {
    std::vector<NamedParameter> all;
    for (std::size_t p = 0; p < parameters.size(); ++p) all.push_back({formatted("p{}", p), &parameters[p]});
    return all;
  }

  // As a trainer does after an error: neither this rank nor the others wait for each other from now on.
  void fail() {
    comm_.poison("a test");
    engine_->fail();
  }
  parallel::GradientEngine& engine() { return *engine_; }
  plan::ParameterStore& store() { return store_; }

  void begin(std::int64_t step) {
    engine_->begin_step({.samples = 100, .position = 7, .learning_rate = 0.01, .update = step + 1});
  }
  // The gradients of this rank's shards are final in the order of `parameters`, but in that of the shards; shards in
  // `empty` have no sample.
  void run_step(std::int64_t step, const std::set<std::int64_t>& empty = {}, std::vector<std::size_t> parameters = {}) {
    for (std::size_t p = parameters.empty() ? kParameters.size() : 0; p-- > 0;) parameters.push_back(p);
    begin(step);
    const Range mine = where_.my_shards();
    for (std::int64_t shard = mine.begin; shard < mine.end; ++shard) {
      if (empty.contains(shard)) {
        engine_->sums_ready();
        engine_->zero_gradients();
      } else {
        run_shard(shard, step, parameters);
      }
      engine_->end_shard();
    }
    engine_->finish_step();
  }

  const parallel::WorldLayout& where() const { return where_; }

 private:
  void run_shard(std::int64_t shard, std::int64_t step, const std::vector<std::size_t>& parameters) {
    for (std::size_t b = 0; b < store_.buckets().size(); ++b) engine_->needs(static_cast<int>(b));
    engine_->shard_sums()[parallel::kLossSum] = number(shard, step);
    engine_->shard_sums()[parallel::kWeightSum] = engine_->shard_sums()[parallel::kSampleSum] =
        static_cast<double>(3 + shard % 3);
    engine_->shard_sums()[parallel::kOtherSums] = number(shard, 40 + step);
    for (std::int64_t i = 0; i < kStatistics; ++i)
      engine_->shard_statistics()[static_cast<std::size_t>(i)] = number(shard, 50 + step + i);
    engine_->sums_ready();
    for (const std::size_t p : parameters) {
      with_type(dtype_, [&]<class T>(T) {
        auto* gradient = static_cast<T*>(store_.gradient(&parameters_[p], engine_->slot()));
        for (std::int64_t i = 0; i < kParameters[p]; ++i)
          gradient[i] = static_cast<T>(number(shard, gradient_shift(p, step) + i));
      });
      engine_->retired(&parameters_[p]);
      engine_->poll();
    }
  }

  comm::Communicator comm_;
  parallel::WorldLayout where_;
  DType dtype_;
  parallel::NodeMemory memory_;
  std::vector<Parameter> parameters_;
  plan::ParameterStore store_;
  std::unique_ptr<parallel::Updater> updater_;
  std::unique_ptr<parallel::GradientEngine> engine_;
};

// The sums of a step's gradients by parameter: one computation for all groupings of ranks and all options, on which
// they do not depend. Shards in `empty` have no sample.
template <class T>
const std::vector<std::vector<T>>& gradient_sums(std::int64_t shards, parallel::Wire wire, std::int64_t step,
                                                 const std::set<std::int64_t>& empty) {
  static std::map<std::tuple<std::int64_t, parallel::Wire, std::int64_t, std::set<std::int64_t>>,
                  std::vector<std::vector<T>>>
      known;
  const auto [entry, is_new] = known.try_emplace({shards, wire, step, empty});
  std::vector<std::vector<T>>& sums = entry->second;
  for (std::size_t p = 0; is_new && p < kParameters.size(); ++p) {
    std::vector<T>& of_parameter = sums.emplace_back();
    for (std::int64_t i = 0; i < kParameters[p]; ++i) {
      const std::int64_t element = gradient_shift(p, step) + i;
      of_parameter.push_back(tree_sum_of<T>(
          shards, wire, [&](std::int64_t shard) { return empty.contains(shard) ? 0 : number(shard, element); }));
    }
  }
  return sums;
}

// Parameters and optimizer state as they must be, on every rank whole.
template <class T>
class EngineReference {
 public:
  explicit EngineReference(const EngineCase& c)
      : shards_(layout(c.shards).tree.shards()), wire_(c.options.reduction.wire), rule_(c.rule) {
    std::vector<Parameter> parameters = EngineRig::make_parameters();
    plan::ParameterStore initial(EngineRig::named(parameters), {.dtype = c.dtype, .seed = 4});
    initial.allocate({}, {});
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const Tensor value = initial.read(formatted("p{}", p));
      values.emplace_back(value.data<T>().begin(), value.data<T>().end());
      states.emplace_back(rule_->states().size(), std::vector<T>(values[p].size()));
    }
  }

  void run_step(std::int64_t step, const std::set<std::int64_t>& empty = {}, double factor = 1) {
    const auto with_gap = [&]<class V>(V, std::int64_t element, parallel::Wire wire) {
      return tree_sum_of<V>(shards_, wire,
                            [&](std::int64_t shard) { return empty.contains(shard) ? 0 : number(shard, element); });
    };
    loss = with_gap(double{}, step, parallel::Wire::Exact);
    count = with_gap(double{}, 40 + step, parallel::Wire::Exact);
    statistics.clear();
    for (std::int64_t i = 0; i < EngineRig::kStatistics; ++i)
      statistics.push_back(with_gap(double{}, 50 + step + i, parallel::Wire::Exact));
    weight = 0;
    for (std::int64_t shard = 0; shard < shards_; ++shard)
      weight += empty.contains(shard) ? 0 : static_cast<double>(3 + shard % 3);
    double squares = 0;
    gradients = gradient_sums<T>(shards_, wire_, step, empty);
    for (const std::vector<T>& gradient : gradients) {
      for (const T g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    }
    norm = weight > 0 ? std::sqrt(squares) / weight : 0;
    if (weight > 0) update(step, 1 / weight * factor);
  }

  void update(std::int64_t step, double scale) {
    for (std::size_t p = 0; p < values.size(); ++p) {
      std::vector<T*> state;
      for (auto& s : states[p]) state.push_back(s.data());
      rule_->apply(std::ssize(values[p]), values[p].data(), gradients[p].data(), state,
                   {.learning_rate = 0.01, .weight_decay = 0, .gradient_scale = scale, .step = step + 1});
    }
  }

  void expect_values(EngineRig& rig, const std::string& what) const {
    rig.engine().settle();
    for (std::size_t p = 0; p < values.size(); ++p) {
      const Tensor got = rig.store().read(formatted("p{}", p));
      expect_equal<T>(got.data<T>(), values[p], formatted("{}, values of p{}", what, p));
    }
  }
  void expect_states(EngineRig& rig, const std::string& what) const {
    for (std::size_t p = 0; p < values.size(); ++p) {
      for (std::size_t s = 0; s < states[p].size(); ++s) {
        const Tensor got = rig.store().read_state(formatted("p{}", p), static_cast<int>(s));
        expect_equal<T>(got.data<T>(), states[p][s], formatted("{}, state {} of p{}", what, s, p));
      }
    }
  }
  void expect_gradients(EngineRig& rig, const std::string& what) const {
    for (std::size_t p = 0; p < values.size(); ++p) {
      const Tensor got = rig.store().read_gradient(formatted("p{}", p));
      expect_equal<T>(got.data<T>(), gradients[p], formatted("{}, gradient of p{}", what, p));
    }
  }
  void expect_sums(EngineRig& rig, const std::string& what) const {
    EXPECT_EQ(rig.engine().sums()[parallel::kLossSum], loss) << what;
    EXPECT_EQ(rig.engine().sums()[parallel::kSampleSum], weight) << what;
    EXPECT_EQ(rig.engine().sums()[parallel::kOtherSums], count) << what;
    expect_equal<double>(rig.engine().statistics(), statistics, what + ", statistics");
  }

  std::vector<std::vector<T>> values, gradients;    // by parameter
  std::vector<std::vector<std::vector<T>>> states;  // and by state
  std::vector<double> statistics;
  double loss = 0, count = 0, weight = 0, norm = 0;

 private:
  std::int64_t shards_;
  parallel::Wire wire_;
  std::shared_ptr<optim::UpdateRule> rule_;
};

}  // namespace lockstep::test
