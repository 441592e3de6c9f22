#include "lockstep/parallel/update/average_exchange.h"

#include <algorithm>

namespace lockstep::parallel {

// Calls visit(values, averages) for the elements that this rank updates.
template <class Visit>
void AverageExchange::visit(const Visit& visit) {
  for (std::size_t b = 0; b < store_.buckets().size(); ++b) {
    const plan::Bucket& bucket = store_.buckets()[b];
    const auto visit_as = [&]<class T>(T) {
      for (const Range range : owned_.updated(b)) {
        const auto n = static_cast<std::size_t>(range.size());
        visit(std::span(reinterpret_cast<T*>(bucket.values) + range.begin, n),
              std::span(reinterpret_cast<T*>(bucket.states.back()) + range.begin, n));
      }
    };
    store_.options().dtype == DType::F64 ? visit_as(double{}) : visit_as(float{});
  }
  store_.values_changed();
}

void AverageExchange::add(double weight) {
  visit([&]<class T>(std::span<T> values, std::span<T> averages) {
    if (weight == 1) {
      std::ranges::copy(values, averages.begin());
      return;
    }
    const auto part = static_cast<T>(weight);
    for (std::size_t i = 0; i < values.size(); ++i) averages[i] += part * (values[i] - averages[i]);
  });
}

void AverageExchange::swap(const comm::Communicator& comm) {
  visit([](auto values, auto averages) { std::ranges::swap_ranges(values, averages); });
  if (owned_.ownership().across_domains) owned_.spread_values(comm);
  for (std::size_t b = 0; b < store_.buckets().size(); ++b) {
    for (const Range range : owned_.updated(b)) store_.refresh(store_.buckets()[b], range);
    if (!owned_.ownership().across_domains) continue;
    for (const Range range : owned_.received(b)) store_.refresh(store_.buckets()[b], range);
  }
}

}  // namespace lockstep::parallel
