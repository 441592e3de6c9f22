#include "lockstep/checkpoint/state_snapshot.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"

namespace lockstep::checkpoint {

StateSnapshot::StateSnapshot(plan::ParameterStore& store, const TrainingState& state) {
  const std::size_t element = size_of(store.options().dtype);
  std::map<const Parameter*, std::vector<std::size_t>> places;  // offsets of the value, then of the states
  for (const plan::Bucket& bucket : store.buckets()) {
    std::vector<const std::byte*> sources{bucket.values};
    sources.insert(sources.end(), bucket.states.begin(), bucket.states.end());
    for (const std::byte* source : sources) {
      const std::size_t begin = add_region(source, static_cast<std::size_t>(bucket.elements) * element);
      for (const plan::BucketEntry& e : bucket.entries)
        places[e.parameter].push_back(begin + static_cast<std::size_t>(e.offset) * element);
    }
  }
  for (const TrainingState::Entry& e : state.entries()) {
    std::vector<std::size_t>& offsets = places[e.parameter];
    const Layout& layout = store.layout(e.parameter);
    if (offsets.empty()) {  // the parameter is in no bucket
      const std::size_t bytes = static_cast<std::size_t>(layout.storage_elements(e.info.shape)) * size_of(e.info.dtype);
      offsets.push_back(add_region(static_cast<const std::byte*>(store.value(e.parameter)), bytes));
    }
    entries_.push_back({e.info, layout, offsets[static_cast<std::size_t>(e.state) + 1]});
  }
  memory_ = allocate_aligned(bytes_);
}

std::size_t StateSnapshot::add_region(const std::byte* source, std::size_t bytes) {
  regions_.push_back({source, bytes, bytes_});
  return std::exchange(bytes_, bytes_ + whole_lines(bytes));
}

void StateSnapshot::take(std::vector<io::NamedTensor> more) {
  more_ = std::move(more);
  added_.clear();
  constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes
  std::vector<Region> pieces;
  for (const Region& r : regions_) {
    for (std::size_t at = 0; at < r.bytes; at += kPiece)
      pieces.push_back({r.source + at, std::min(kPiece, r.bytes - at), r.offset + at});
  }
  parallel_for(static_cast<std::int64_t>(pieces.size()), kPiece / sizeof(float),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const Region& piece = pieces[static_cast<std::size_t>(i)];
                   std::memcpy(memory_.get() + piece.offset, piece.source, piece.bytes);
                 }
               });
}

io::TensorSource StateSnapshot::tensors() {
  io::TensorSource source{.tensor = [this](std::size_t i) -> const io::NamedTensor& { return tensor(i); }};
  for (const Entry& e : entries_) source.infos.push_back(e.info);
  for (const auto& [name, tensor] : more_) source.infos.push_back({name, tensor.shape(), tensor.dtype()});
  for (const io::TensorSource& added : added_)
    source.infos.insert(source.infos.end(), added.infos.begin(), added.infos.end());
  return source;
}

const io::NamedTensor& StateSnapshot::tensor(std::size_t index) {
  std::size_t rest = index - std::min(index, entries_.size());
  if (index >= entries_.size() && rest < more_.size()) return more_[rest];
  if (index >= entries_.size()) {
    rest -= more_.size();
    auto added = added_.begin();
    for (; rest >= added->count(); ++added) rest -= added->count();
    return added->tensor(rest);
  }
  const Entry& e = entries_[index];
  current_ = {};  // frees its memory before the next tensor is made
  current_ = {e.info.name, Tensor(e.info.shape, e.info.dtype)};
  if (current_.tensor.elements() > 0)
    reorder(e.info.shape, e.info.dtype, e.layout, memory_.get() + e.offset, {}, current_.tensor.raw());
  return current_;
}

}  // namespace lockstep::checkpoint
