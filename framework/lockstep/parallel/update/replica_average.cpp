#include "lockstep/parallel/update/replica_average.h"

#include <span>
#include <vector>

namespace lockstep::parallel {

void ReplicaAverage::run(const comm::Communicator& comm) {
  const auto average = [&]<class T>(T* values, std::int64_t elements) {
    const std::span<T> all(values, static_cast<std::size_t>(elements));
    comm.allreduce(all, comm::ReduceOp::Sum);
    for (T& v : all) v /= static_cast<T>(comm.size());
  };
  for (plan::Bucket& b : store_.buckets()) {
    std::vector<std::byte*> parts = b.states;
    parts.push_back(b.values);
    for (std::byte* part : parts) {
      store_.options().dtype == DType::F64 ? average(reinterpret_cast<double*>(part), b.elements)
                                           : average(reinterpret_cast<float*>(part), b.elements);
    }
  }
  store_.refresh();
  differ_ = false;
}

}  // namespace lockstep::parallel
