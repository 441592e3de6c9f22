// A reduction of one's own in place of the tree: it is given each bucket when this rank's gradient in it is final, and
// leaves there what the update shall use. All ranks start the same buckets in the same order. Called by one thread at a
// time, which with a communication thread is that one; no OpenMP then. Neither start() nor done() waits for other
// ranks, so that a rank that gives up is not held by those that never come. What a hook leaves need not be the same at
// other numbers of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

class BucketHook {
 public:
  virtual ~BucketHook() = default;
  virtual std::string describe() const = 0;  // for the log
  // Before everything else; collective.
  virtual void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) = 0;
  // `gradient` is this rank's sum over its samples; it becomes the sum over all ranks' samples. It stays where it is
  // until end(), and until the process ends if a Request on a communicator made of begin()'s has to be given up.
  virtual void start(int bucket, std::span<float> gradient) = 0;
  virtual void start(int bucket, std::span<double> gradient) = 0;
  // Drives what start() began; true once the result is there.
  virtual bool done(int bucket) = 0;
  // Buckets may be under way when a rank gives up: afterwards nothing is at their gradients.
  virtual void end() {}
  // Whether all ranks are left with the same gradient; else weights drift apart, and somebody else joins them.
  virtual bool reduces() const { return true; }
};

// MPI_Iallreduce, bucket by bucket: whatever order of summation the MPI library likes.
class MpiAllreduceHook : public BucketHook {
 public:
  std::string describe() const override { return "MPI_Iallreduce for each bucket"; }
  void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) override;
  void start(int bucket, std::span<float> gradient) override;
  void start(int bucket, std::span<double> gradient) override;
  bool done(int bucket) override { return requests_[static_cast<std::size_t>(bucket)].test(); }
  void end() override { requests_.clear(); }

 private:
  std::optional<comm::Communicator> comm_;  // once begun
  std::vector<comm::Request> requests_;     // by bucket
};

// Each rank sends the part of the gradient that is largest and keeps the rest for the next step: top-k with error
// feedback (Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", 2018, algorithm 1). If a gradient has
// elements that are not finite, those are sent, so that the guards of all ranks see them, and the rest of that gradient
// is discarded.
class TopKHook : public BucketHook {
 public:
  explicit TopKHook(double part);  // of the elements of a bucket, at least one of them; in (0, 1]
  std::string describe() const override;
  void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) override;
  void start(int bucket, std::span<float> gradient) override;
  void start(int bucket, std::span<double> gradient) override;
  bool done(int bucket) override;
  void end() override;

 private:
  struct Chosen {
    std::int32_t index;
    float value;
  };
  struct Messages {
    std::vector<Chosen> mine, all;
  };
  struct State {                     // of a bucket
    std::vector<float> kept;         // what was not sent
    std::span<float> gradient = {};  // under way
    std::shared_ptr<Messages> messages = std::make_shared<Messages>();
    comm::Request request = {};
  };
  std::int64_t chosen_of(std::int64_t elements) const;
  void choose_largest(State& bucket, std::size_t count);

  double part_;
  std::optional<comm::Communicator> comm_;
  std::vector<State> buckets_;
  std::vector<float> magnitudes_;
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

}  // namespace lockstep::parallel
