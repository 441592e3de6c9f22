#include "lockstep/train/state/tensor_broadcast.h"

#include <xxhash.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"

namespace lockstep::train {
namespace {

using io::TensorInfo;

// Sends rank 0's list to all ranks: numbers (type, number of dimensions, dimensions) and names, each followed by a zero
// byte, which no name contains.
std::vector<TensorInfo> broadcast_list(const comm::Communicator& comm, const std::vector<TensorInfo>& list) {
  std::vector<std::int64_t> numbers;
  std::string names;
  if (comm.is_root()) {
    for (const TensorInfo& info : list) {
      numbers.push_back(static_cast<std::int64_t>(info.dtype));
      numbers.push_back(info.shape.rank());
      numbers.insert(numbers.end(), info.shape.dims().begin(), info.shape.dims().end());
      names += info.name + '\0';
    }
  }
  comm.broadcast_vector(numbers);
  names = comm.broadcast_string(names);
  std::vector<TensorInfo> received;
  std::size_t begin = 0;
  for (auto number = numbers.begin(); number != numbers.end();) {
    const auto dtype = static_cast<DType>(*number++);
    const std::int64_t rank = *number++;
    const std::size_t end = names.find('\0', begin);
    received.push_back(
        {names.substr(begin, end - begin), Shape(std::vector<std::int64_t>(number, number + rank)), dtype});
    number += rank;
    begin = end + 1;
  }
  return received;
}

}  // namespace

TensorBroadcast::TensorBroadcast(const comm::Communicator& comm, const parallel::NodeMemory& memory,
                                 const io::TensorSource& source, std::function<bool(const std::string&)> is_shared)
    : comm_(comm),
      memory_(memory),
      source_(source),
      is_shared_(std::move(is_shared)),
      infos_(broadcast_list(comm, source.infos)) {}

io::TensorSource TensorBroadcast::tensors() {
  return {.infos = infos_, .tensor = [this](std::size_t i) -> const io::NamedTensor& { return tensor(i); }};
}

const io::NamedTensor& TensorBroadcast::tensor(std::size_t index) {
  const TensorInfo& info = infos_[index];
  const bool shared = is_shared_(info.name);
  const bool receives = !comm_.is_root() && (!shared || memory_.fills_common());
  current_ = {};
  const io::NamedTensor* result = &current_;
  comm::collectively(comm_, [&] {
    if (comm_.is_root()) result = &source_.tensor(index);
    if (receives) current_ = {info.name, Tensor(info.shape, info.dtype)};
  });
  const Tensor& values = result->tensor;
  const std::size_t bytes = info.bytes();
  if (bytes == 0) return *result;
  const std::uint64_t sent =
      comm_.broadcast_value(comm_.is_root() ? XXH3_64bits(values.raw(), bytes) : std::uint64_t{0});
  // The root's tensors are only read.
  const std::span<std::byte> part(const_cast<std::byte*>(values.raw()), values.raw() == nullptr ? 0 : bytes);
  shared ? memory_.broadcast_common(part) : comm_.broadcast(part);
  if (!receives) return *result;
  if (fault_wanted("resume.receive", static_cast<std::int64_t>(index))) part[bytes / 2] ^= std::byte{1};
  const std::uint64_t hash = XXH3_64bits(part.data(), bytes);
  if (hash != sent && damage_.empty())
    damage_ = formatted("XXH3-64 of the values of \"{}\" is {:016x}, expects {:016x}", info.name, hash, sent);
  return *result;
}

void TensorBroadcast::check_received(const std::string& file) const {
  check(damage_.empty(), "checkpoint", "{}, as this rank received it: damaged: {}", file, damage_);
}

}  // namespace lockstep::train
