#include "lockstep/parallel/updater.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep {

Updater::Updater(ParameterStore& store, std::shared_ptr<optim::UpdateRule> rule, const UpdaterOptions& options)
    : store_(store), rule_(std::move(rule)) {
  for (const optim::ParameterGroup& g : options.groups) {
    const bool used =
        std::ranges::any_of(store.parameters(), [&](const auto& p) { return optim::matches(g.pattern, p.name); });
    check(used, "optimizer", "no parameter's name fits the group '{}'", g.pattern);
  }
  for (std::size_t b = 0; b < store.buckets().size(); ++b) {
    for (const BucketEntry& e : store.buckets()[b].entries) {
      const optim::ParameterGroup* group = optim::find_group(options.groups, e.name);
      const bool decays = options.decay_biases_and_norms || e.parameter->role == Role::Weight;
      Stretch s{b, e.offset, e.offset + e.elements, group != nullptr ? group->rate_scale : 1,
                decays ? options.weight_decay : 0};
      if (group != nullptr && group->weight_decay) s.weight_decay = *group->weight_decay;
      Stretch* last = stretches_.empty() ? nullptr : &stretches_.back();
      if (last != nullptr && last->bucket == b && last->end == s.begin && last->rate_scale == s.rate_scale &&
          last->weight_decay == s.weight_decay) {
        last->end = s.end;
      } else {
        stretches_.push_back(s);
      }
    }
  }
}

void Updater::update(double learning_rate, double weight, std::int64_t step) {
  const auto run = [&]<class T>(const Stretch& s, T) {
    Bucket& bucket = store_.buckets()[s.bucket];
    const auto at = [&](AlignedBuffer& memory) { return reinterpret_cast<T*>(memory.get()) + s.begin; };
    std::vector<T*> states;
    for (AlignedBuffer& state : bucket.states) states.push_back(at(state));
    rule_->apply(s.end - s.begin, at(bucket.values), at(bucket.gradients[0]), states,
                 {.learning_rate = learning_rate * s.rate_scale,
                  .weight_decay = s.weight_decay,
                  .gradient_scale = 1 / weight,
                  .step = step});
  };
  for (const Stretch& s : stretches_) {
    store_.options().dtype == DType::F64 ? run(s, double{}) : run(s, float{});
  }
  store_.refresh();
}

template <class T>
void move_running_statistics(const RunningUpdate& u, T* mean, T* variance) {
  if (u.count <= 0) return;
  for (std::size_t c = 0; c < u.sums.size(); ++c) {
    const double m = u.sums[c] / u.count;
    const double biased = std::max(0.0, u.squares[c] / u.count - m * m);
    const double v = u.count > 1 ? biased * u.count / (u.count - 1) : biased;
    mean[c] = static_cast<T>((1 - u.momentum) * static_cast<double>(mean[c]) + u.momentum * m);
    variance[c] = static_cast<T>((1 - u.momentum) * static_cast<double>(variance[c]) + u.momentum * v);
  }
}

template void move_running_statistics<float>(const RunningUpdate&, float*, float*);
template void move_running_statistics<double>(const RunningUpdate&, double*, double*);

}  // namespace lockstep
