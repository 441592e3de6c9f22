// Sums buckets over all ranks by the reduction tree with plain messages: each rank collects its slice of every rank's
// open partial sums, adds them in tree order, and sends the slice to all. A state machine that progress() drives, so
// buckets travel while backward goes on; a few at a time, so that what they receive into is small. Each bucket's slots
// are the caller's memory; after a bucket is done, its slot 0 is the sum, the same bits on every rank. One thread; all
// ranks start the same buckets in the same order. Throws Error where MPI fails, which poisons the communicator.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/tensor.h"
#include "lockstep/parallel/world_layout.h"

namespace lockstep {

class BucketReducer {
 public:
  // The communicator is used for nothing else while the reducer lives.
  BucketReducer(const comm::Communicator& comm, const WorldLayout& world);

  // `slots` are addresses of `elements` each; those of this rank's partials are read. Returns the bucket's number.
  int add_bucket(DType dtype, std::int64_t elements, std::vector<void*> slots);

  void start(int bucket);
  bool progress();                                            // true when nothing is under way
  void finish();                                              // until nothing is under way
  std::size_t bytes() const { return kLanes * lane_bytes_; }  // that it allocates itself

 private:
  enum class Phase : std::uint8_t { Idle, Queued, Exchange, Gather };
  struct Bucket {
    int number;
    DType dtype;
    std::int64_t elements;
    std::vector<void*> slots;
    std::vector<const void*> operands = {};  // by tree order: my slots' slices and the received ones
    Phase phase = Phase::Idle;
    int lane = -1;
    std::vector<comm::Request> requests = {};
  };
  // Memory to receive into, of one bucket at a time.
  struct Lane {
    AlignedBuffer memory;
    bool taken = false;
  };
  static constexpr std::size_t kLanes = 2;

  bool admit(Bucket& bucket);
  void place_operands(Bucket& bucket, std::byte* received);
  Range slice(const Bucket& bucket, int rank) const;
  void exchange(Bucket& bucket);
  void reduce_slice(Bucket& bucket);
  void gather(Bucket& bucket);
  void advance(Bucket& bucket);

  const comm::Communicator& comm_;
  int rank_, size_;
  std::vector<std::vector<TreeNode>> partials_;
  std::vector<TreeMerge> merges_;
  std::deque<Bucket> buckets_;
  std::array<Lane, kLanes> lanes_;
  std::size_t lane_bytes_ = 0;  // the other ranks' partials of my slice, of the largest bucket
  std::vector<int> queue_;      // started, in that order, which is the same on all ranks
  std::size_t admitted_ = 0;    // of the queue
  std::vector<const float*> operands_f32_;
  std::vector<const double*> operands_f64_;
};

}  // namespace lockstep
