// A reduction of one's own in place of the tree: it is given each bucket when this rank's gradient in it is final, and
// leaves there what the update shall use. All ranks start the same buckets in the same order. Called by one thread at a
// time, which with a communication thread is that one; no OpenMP then. What a hook leaves need not be the same at other
// numbers of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

class BucketHook {
 public:
  virtual ~BucketHook() = default;
  virtual std::string describe() const = 0;  // for the log
  // Before everything else; collective.
  virtual void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) = 0;
  // `gradient` is this rank's sum over its samples; it becomes the sum over all ranks' samples.
  virtual void start(int bucket, std::span<float> gradient) = 0;
  virtual void start(int bucket, std::span<double> gradient) = 0;
  // Drives what start() began; true once the result is there.
  virtual bool done(int bucket) = 0;
  // Whether all ranks are left with the same gradient; else weights drift apart, and somebody else joins them.
  virtual bool reduces() const { return true; }
};

// MPI_Allreduce, bucket by bucket: whatever order of summation the MPI library likes.
class MpiAllreduceHook : public BucketHook {
 public:
  std::string describe() const override { return "MPI_Allreduce for each bucket"; }
  void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) override;
  void start(int bucket, std::span<float> gradient) override;
  void start(int bucket, std::span<double> gradient) override;
  bool done(int) override { return true; }

 private:
  std::vector<comm::Communicator> comm_;  // one, once begun
};

// Each rank sends the part of the gradient that is largest and keeps the rest for the next step: top-k with error
// feedback (Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", 2018, algorithm 1).
class TopKHook : public BucketHook {
 public:
  explicit TopKHook(double part);  // of the elements of a bucket, at least one of them; in (0, 1]
  std::string describe() const override;
  void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) override;
  void start(int bucket, std::span<float> gradient) override;
  void start(int bucket, std::span<double> gradient) override;
  bool done(int) override { return true; }

 private:
  std::int64_t chosen_of(std::int64_t elements) const;

  double part_;
  std::vector<comm::Communicator> comm_;
  std::vector<std::vector<float>> kept_;  // by bucket: what was not sent
  std::vector<float> magnitudes_, values_, all_values_;
  std::vector<std::int32_t> indices_, all_indices_;
};

// Nothing is exchanged: local SGD between two averages of the weights (Stich, "Local SGD converges fast and
// communicates little", ICLR 2019).
class LocalHook : public BucketHook {
 public:
  std::string describe() const override { return "local steps: gradients stay on their rank"; }
  void begin(const comm::Communicator&, std::span<const std::int64_t>) override {}
  void start(int, std::span<float>) override {}
  void start(int, std::span<double>) override {}
  bool done(int) override { return true; }
  bool reduces() const override { return false; }
};

}  // namespace lockstep
