// A user's reduction in place of the reduction tree. The hook gets each bucket when this rank's gradient in the bucket
// is final, and replaces it by the gradient for the update. All ranks start the same buckets in the same order. One
// thread at a time calls a hook; with a communication thread it is that thread, and the hook then must not use OpenMP.
// start() and done() do not wait for other ranks, so that a rank can stop although another rank never calls. The result
// of a hook may depend on the number of ranks. Errors are thrown as exceptions and end the step.
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
  // Returns a text for the log.
  virtual std::string describe() const = 0;
  // Called before all other functions; collective. `bucket_elements` is by bucket; `comm` outlives the hook's use.
  virtual void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) = 0;
  // Starts the reduction of a bucket. `gradient` is this rank's sum over its samples; it becomes the sum over the
  // samples of all ranks. Its memory stays until end(), and until the process ends if a Request on a communicator
  // derived from that of begin() has to be abandoned.
  virtual void start(int bucket, std::span<float> gradient) = 0;
  virtual void start(int bucket, std::span<double> gradient) = 0;
  // Makes progress with the reduction of a bucket; returns true once the result is complete.
  virtual bool done(int bucket) = 0;
  // The step is not applied: it is skipped, or runs again with the same samples, or no rank had a sample. Called when
  // the buckets of the step are done; what start() has changed for later steps is to be as before.
  virtual void refused() {}
  // Ends the hook. Reductions may be incomplete; after end() the hook does not touch any gradient.
  virtual void end() {}
  // Whether all ranks get the same gradient. If not, the weights of ranks differ, and the engine averages them
  // (update/replica_average.h).
  virtual bool reduces() const { return true; }
};

// Reduces each bucket by MPI_Iallreduce, in the order of summation of the MPI library.
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

// Top-k with error feedback: each rank sends the elements of its gradient that are largest by absolute value, and adds
// the others to the gradient of the next step (Stich, Cordonnier, Jaggi, "Sparsified SGD with memory" (2018), algorithm
// 1). Elements that are not finite are sent, so that the guards of all ranks see them; the rest of such a gradient is
// discarded.
class TopKHook : public BucketHook {
 public:
  // `part` in (0, 1] is the fraction of a bucket's elements that is sent, at least one element. Throws Error outside.
  explicit TopKHook(double part);
  std::string describe() const override;
  void begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) override;
  void start(int bucket, std::span<float> gradient) override;
  void start(int bucket, std::span<double> gradient) override;
  bool done(int bucket) override;
  void refused() override;
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
    std::vector<float> kept;         // elements that were not sent
    std::vector<float> before = {};  // the same before the present step
    std::span<float> gradient = {};  // in progress
    std::shared_ptr<Messages> messages = std::make_shared<Messages>();
    std::vector<comm::Request> requests = {};
  };
  std::int64_t chosen_of(std::int64_t elements) const;
  void choose_largest(State& bucket, std::size_t count);
  void send_chosen(State& bucket);

  double part_;
  std::optional<comm::Communicator> comm_;
  std::vector<State> buckets_;
  std::vector<float> magnitudes_;
};

// Exchanges nothing, for local SGD between two averages of the weights (Stich, "Local SGD converges fast and
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
