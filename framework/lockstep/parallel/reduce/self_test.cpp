#include "lockstep/parallel/reduce/self_test.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/backoff.h"
#include "lockstep/core/random.h"
#include "lockstep/parallel/exchange/node_memory.h"

namespace lockstep::parallel {
namespace {

std::string_view path_of(const Domains& domains) {
  if (domains.count() == 1) return "shared";
  return domains.count() == domains.size() ? "messages" : "hierarchical";
}

// Integers whose sums fit into 8 bits, the precision of bf16. With more than 250 ranks some contribute zeros.
template <class T>
void fill(std::span<T> values, const comm::Communicator& comm, std::uint64_t seed) {
  constexpr int kLargestSum = 250;
  const int every = (comm.size() + kLargestSum - 1) / kLargestSum, bringing = (comm.size() + every - 1) / every;
  const int largest = comm.rank() % every == 0 ? kLargestSum / bringing : 0;
  const std::uint64_t width = 2 * static_cast<std::uint64_t>(largest) + 1;
  RandomStream random(seed, static_cast<std::uint64_t>(comm.rank()));
  for (T& v : values) v = static_cast<T>(static_cast<int>(random.below(width)) - largest);
}

template <class T>
struct TestBucket {
  std::span<T> mine;
  std::vector<T> expected;

  TestBucket(const comm::Communicator& comm, NodeMemory& memory, BucketReducer& reducer,
             const SelfTestOptions& options) {
    const std::span<std::byte> bytes = memory.own(static_cast<std::size_t>(options.elements) * sizeof(T));
    mine = {reinterpret_cast<T*>(bytes.data()), static_cast<std::size_t>(options.elements)};
    fill(mine, comm, options.seed);
    expected.assign(mine.begin(), mine.end());
    comm.allreduce(expected, comm::ReduceOp::Sum);
    BucketMemory bucket{.dtype = dtype_of<T>, .elements = options.elements, .slots = {}};
    for (const std::span<std::byte> segment : memory.segments(bytes)) bucket.slots.push_back({segment.data()});
    reducer.add_bucket(std::move(bucket));
  }
};

void reduce(BucketReducer& reducer, SharedFlags& flags) {
  try {
    for (int bucket : {0, 1}) reducer.start(bucket);
    for (Backoff wait; !reducer.available(0) || !reducer.available(1);) {
      if (!reducer.progress()) wait.pause();
    }
  } catch (...) {
    flags.fail();
    throw;
  }
}

}  // namespace

template <class T>
void check_sums(const comm::Communicator& comm, std::string_view path, std::span<const T> sums,
                std::span<const T> expected) {
  std::optional<std::string> error;
  for (std::size_t i = 0; i < expected.size() && !error; ++i) {
    if (sums[i] == expected[i]) continue;
    error = fmt::format("[self-test] path {}: the sum of element {} of {} {} is {}, MPI's own allreduce gives {}", path,
                        i, expected.size(), name_of(dtype_of<T>), sums[i], expected[i]);
  }
  comm::agree(comm, error);
}

template void check_sums<float>(const comm::Communicator&, std::string_view, std::span<const float>,
                                std::span<const float>);
template void check_sums<double>(const comm::Communicator&, std::string_view, std::span<const double>,
                                 std::span<const double>);

void check_paths(const comm::Communicator& comm, const SelfTestOptions& options) {
  const WorldLayout world(comm.rank(), comm.size(), 0);
  const comm::Communicator messages = comm.duplicate();
  NodeMemory memory(comm, options.domains, false);
  CommTransport transport(messages);
  SharedFlags flags(memory.segments(memory.own(SharedFlags::bytes(BucketReducer::flags_for(2)))),
                    options.domains.local_rank());
  BucketReducer reducer(transport, flags, options.domains, world, options.reduction);
  const TestBucket<float> singles(comm, memory, reducer, options);
  const TestBucket<double> doubles(comm, memory, reducer, options);
  reduce(reducer, flags);
  const std::string_view path = path_of(options.domains);
  check_sums<float>(comm, path, singles.mine, singles.expected);
  check_sums<double>(comm, path, doubles.mine, doubles.expected);
}

}  // namespace lockstep::parallel
