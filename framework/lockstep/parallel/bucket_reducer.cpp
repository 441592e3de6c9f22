#include "lockstep/parallel/bucket_reducer.h"

#include <algorithm>
#include <thread>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

comm::Buffer view(void* base, DType dtype, Range range) {
  const auto element = dtype == DType::F64 ? comm::Element::F64 : comm::Element::F32;
  return {static_cast<std::byte*>(base) + range.begin * static_cast<std::int64_t>(size_of(dtype)), range.size(),
          element};
}

}  // namespace

BucketReducer::BucketReducer(const comm::Communicator& comm, const WorldLayout& world)
    : comm_(comm), rank_(world.rank), size_(world.size), partials_(world.partials()), merges_(world.merges()) {}

// Slices are whole cache lines, which no two ranks then write.
Range BucketReducer::slice(const Bucket& bucket, int rank) const {
  const auto line = static_cast<std::int64_t>(kAlignment / size_of(bucket.dtype));
  const Range lines = part_of((bucket.elements + line - 1) / line, size_, rank);
  return {std::min(lines.begin * line, bucket.elements), std::min(lines.end * line, bucket.elements)};
}

int BucketReducer::add_bucket(DType dtype, std::int64_t elements, std::vector<void*> slots) {
  const int number = static_cast<int>(buckets_.size());
  check(dtype == DType::F32 || dtype == DType::F64, "reduction", "bucket {} is {}, expected f32 or f64", number,
        name_of(dtype));
  check(number <= comm::Communicator::kMaxTag, "reduction", "bucket {} is one too many: the limit is {}", number,
        comm::Communicator::kMaxTag);
  check(slots.size() >= partials_[static_cast<std::size_t>(rank_)].size(), "reduction",
        "bucket {} has {} slots, this rank's part of the tree needs {}", number, slots.size(),
        partials_[static_cast<std::size_t>(rank_)].size());
  Bucket& b =
      buckets_.emplace_back(Bucket{.number = number, .dtype = dtype, .elements = elements, .slots = std::move(slots)});
  std::size_t others = 0;
  for (int r = 0; r < size_; ++r) others += r == rank_ ? 0 : partials_[static_cast<std::size_t>(r)].size();
  check(!lanes_[0].memory, "reduction", "bucket {} is added after others were started", number);
  queue_.reserve(buckets_.size());  // how long it gets depends on how fast the others answer
  lane_bytes_ = std::max(lane_bytes_, others * static_cast<std::size_t>(slice(b, rank_).size()) * size_of(dtype));
  return number;
}

void BucketReducer::place_operands(Bucket& b, std::byte* received) {
  b.operands.clear();
  const auto bytes = static_cast<std::size_t>(slice(b, rank_).size()) * size_of(b.dtype);
  for (int r = 0; r < size_; ++r) {
    for (std::size_t s = 0; s < partials_[static_cast<std::size_t>(r)].size(); ++s) {
      b.operands.push_back(r == rank_ ? view(b.slots[s], b.dtype, slice(b, rank_)).data : received);
      if (r != rank_) received += bytes;
    }
  }
}

void BucketReducer::start(int bucket) {
  Bucket& b = buckets_[static_cast<std::size_t>(bucket)];
  check(b.phase == Phase::Idle, "reduction", "bucket {} was started twice in one step", bucket);
  if (size_ == 1 || b.elements == 0) return;  // one rank has joined its leaves to the root in slot 0 already
  for (Lane& lane : lanes_) {
    if (!lane.memory) lane.memory = allocate_aligned(lane_bytes_);
  }
  b.phase = Phase::Queued;
  queue_.push_back(bucket);
  progress();
}

// Takes a free lane, if there is one. Buckets are admitted in the order of start(), so ranks that are ahead never hold
// all lanes with buckets that the others cannot answer yet.
bool BucketReducer::admit(Bucket& b) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    Lane& lane = lanes_[i];
    if (lane.taken) continue;
    lane.taken = true;
    b.lane = static_cast<int>(i);
    place_operands(b, lane.memory.get());
    exchange(b);
    return true;
  }
  return false;
}

void BucketReducer::exchange(Bucket& b) {
  b.phase = Phase::Exchange;
  b.requests.clear();
  std::size_t operand = 0;
  const Range mine = slice(b, rank_);
  for (int r = 0; r < size_; ++r) {
    for (std::size_t s = 0; s < partials_[static_cast<std::size_t>(r)].size(); ++s, ++operand) {
      if (r == rank_) continue;
      void* into = const_cast<void*>(b.operands[operand]);
      b.requests.push_back(comm_.irecv(view(into, b.dtype, {0, mine.size()}), r, b.number));
    }
  }
  for (int step = 1; step < size_; ++step) {  // from the next rank on, so that not all send to rank 0 first
    const int r = (rank_ + step) % size_;
    for (std::size_t s = 0; s < partials_[static_cast<std::size_t>(rank_)].size(); ++s) {
      b.requests.push_back(comm_.isend(view(b.slots[s], b.dtype, slice(b, r)), r, b.number));
    }
  }
}

void BucketReducer::reduce_slice(Bucket& b) {
  const Range mine = slice(b, rank_);
  const auto sum = [&]<class T>(std::vector<const T*>& operands) {
    operands.clear();
    for (const void* o : b.operands) operands.push_back(static_cast<const T*>(o));
    tree_sum<T>(operands, merges_, mine.size(), static_cast<T*>(b.slots[0]) + mine.begin);
  };
  b.dtype == DType::F64 ? sum(operands_f64_) : sum(operands_f32_);
}

void BucketReducer::gather(Bucket& b) {
  b.phase = Phase::Gather;
  b.requests.clear();
  for (int step = 1; step < size_; ++step) {
    const int r = (rank_ + step) % size_;
    b.requests.push_back(comm_.irecv(view(b.slots[0], b.dtype, slice(b, r)), r, b.number));
    b.requests.push_back(comm_.isend(view(b.slots[0], b.dtype, slice(b, rank_)), r, b.number));
  }
}

void BucketReducer::advance(Bucket& b) {
  if (b.phase == Phase::Idle || b.phase == Phase::Queued || !comm::test_all(b.requests)) return;
  if (b.phase == Phase::Exchange) {
    reduce_slice(b);
    lanes_[static_cast<std::size_t>(b.lane)].taken = false;
    gather(b);
  } else {
    b.phase = Phase::Idle;
  }
}

bool BucketReducer::progress() {
  bool idle = true;
  for (Bucket& b : buckets_) {
    advance(b);
    idle = idle && b.phase == Phase::Idle;
  }
  while (admitted_ < queue_.size() && admit(buckets_[static_cast<std::size_t>(queue_[admitted_])])) ++admitted_;
  if (idle) {
    queue_.clear();
    admitted_ = 0;
  }
  return idle;
}

void BucketReducer::finish() {
  while (!progress()) std::this_thread::yield();  // with more ranks than cores a peer may need this core to answer
}

}  // namespace lockstep
