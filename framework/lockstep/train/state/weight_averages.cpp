#include "lockstep/train/state/weight_averages.h"

#include <algorithm>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

// Calls `visit` with the elements of a running statistic, in their type; they lie in logical order.
template <class Visit>
void with_values(plan::ParameterStore& store, const Parameter* parameter, const Visit& visit) {
  const auto n = static_cast<std::size_t>(parameter->shape.elements());
  void* value = store.value(parameter);
  store.dtype(parameter) == DType::F64 ? visit(std::span(static_cast<double*>(value), n))
                                       : visit(std::span(static_cast<float*>(value), n));
}

std::string average_name(const std::string& name) { return formatted("{}{}", checkpoint::kAveragePrefix, name); }

}  // namespace

WeightAverages::WeightAverages(PreparedModel& prepared, parallel::GradientEngine& engine)
    : options_(prepared.options().average), store_(prepared.store()), engine_(&engine) {
  if (!options_.any()) return;
  for (const RunningStatistics& s : prepared.nominal().statistics) {
    for (const Parameter* p : {s.mean, s.variance})
      statistics_.push_back({store_.name(p), p, std::vector<double>(static_cast<std::size_t>(p->shape.elements()))});
  }
}

void WeightAverages::move(double weight) {
  for (Statistic& s : statistics_) {
    with_values(store_, s.parameter, [&](auto values) {
      if (weight == 1) {  // whatever the average was, also if it was not finite
        std::ranges::copy(values, s.average.begin());
        return;
      }
      for (std::size_t i = 0; i < values.size(); ++i)
        s.average[i] += weight * (static_cast<double>(values[i]) - s.average[i]);
    });
  }
}

void WeightAverages::begin() {
  count_ = 0;
  if (options_.ema == 0) return;
  count_ = 1;
  engine_->add_to_average(1);
  move(1);
}

void WeightAverages::update() {
  if (options_.ema > 0) move(1 - options_.ema);
}

void WeightAverages::add() {
  if (options_.swa_start == 0) return;
  const double weight = 1 / ++count_;
  engine_->add_to_average(weight);
  move(weight);
}

void WeightAverages::use(bool average) {
  if (!exists()) return;
  if (average) engine_->average_replicas();
  engine_->swap_average(average);
  for (Statistic& s : statistics_) {
    if (average) s.own = store_.read(s.name);
    with_values(store_, s.parameter, [&]<class T>(std::span<T> values) {
      if (average) {
        std::ranges::transform(s.average, values.begin(), [](double v) { return static_cast<T>(v); });
      } else {
        std::ranges::copy(s.own.data<T>(), values.begin());
      }
    });
    store_.refresh(s.parameter);
  }
  if (!average) engine_->values_are_back();
}

std::vector<io::NamedTensor> WeightAverages::state() const {
  std::vector<io::NamedTensor> tensors;
  if (!options_.any()) return tensors;
  tensors.push_back({std::string(checkpoint::kAverageCount), Tensor::from<double>(Shape{1}, std::span(&count_, 1))});
  for (const Statistic& s : statistics_)
    tensors.push_back({average_name(s.name), Tensor::from<double>(s.parameter->shape, std::span(s.average))});
  // The optimizer's state has tied weights under their first name alone, and a reader looks for each name.
  const int last = store_.options().optimizer_states - 1;
  for (const NamedParameter& p : store_.parameters()) {
    if (store_.has_gradient(p.parameter) && store_.name(p.parameter) != p.name)
      tensors.push_back({average_name(p.name), store_.read_state(p.name, last)});
  }
  return tensors;
}

void WeightAverages::require(const std::vector<io::TensorInfo>& infos) const {
  if (!options_.any()) return;
  const auto expect = [&](const std::string& name, std::size_t expected) {
    const auto found = std::ranges::find(infos, name, &io::TensorInfo::name);
    check(found != infos.end(), "average", "the checkpoint has no tensor {}, expected one for the average of weights",
          name);
    check(found->dtype == DType::F64 && std::cmp_equal(found->shape.elements(), expected), "average",
          "the checkpoint's {} is {} {}, expected {} numbers of f64", name, name_of(found->dtype), found->shape.str(),
          expected);
  };
  expect(std::string(checkpoint::kAverageCount), 1);
  for (const Statistic& s : statistics_) expect(average_name(s.name), s.average.size());
}

void WeightAverages::load(const std::vector<io::NamedTensor>& tensors) {
  if (!options_.any()) return;
  std::vector<io::TensorInfo> infos;
  for (const auto& [name, tensor] : tensors) infos.push_back({name, tensor.shape(), tensor.dtype()});
  require(infos);
  const auto values_of = [&](const std::string& name) {
    return std::ranges::find(tensors, name, &io::NamedTensor::name)->tensor.data<double>();
  };
  count_ = values_of(std::string(checkpoint::kAverageCount))[0];
  for (Statistic& s : statistics_) std::ranges::copy(values_of(average_name(s.name)), s.average.begin());
}

}  // namespace lockstep::train
