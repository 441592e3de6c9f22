// Past samples of a stream, which are trained again beside new ones. Each rank keeps its own. Which samples stay and
// which are drawn depends on the seed, the rank and the number of samples and batches so far, never on time. One thread
// makes batches with draw(), read(), put() and end_batch(); another thread may call release(), freeze() and counts():
// the state after the batches that were released does not contain the batches that were made ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The samples that stay when the reservoir is full. Uniform: every sample of the stream so far has the same chance
// (Vitter, "Random sampling with a reservoir" (1985), algorithm R). Recent: a new sample replaces a random one, so the
// chance of an old sample falls exponentially, for a stream whose samples change with time.
enum class ReservoirPolicy : std::uint8_t { Uniform, Recent };

struct ReservoirOptions {
  std::int64_t capacity = 0;  // samples that each rank keeps; 0: no reservoir
  double replay = 0.5;        // fraction of a batch that is past samples, in [0, 1); at least one sample is new
  ReservoirPolicy policy = ReservoirPolicy::Uniform;
};

class Reservoir {
 public:
  struct Sample {
    std::int64_t id = 0;
    std::vector<std::byte> bytes{};  // the fields before transforms, one after the other
  };
  // The counts on which random choices depend, and the number of samples that are held.
  struct Counts {
    std::int64_t offered = 0, batches = 0, held = 0;
    bool operator==(const Counts&) const = default;
  };

  // `seed` must differ between ranks. Throws Error for options out of their range and for wrong fields.
  Reservoir(std::vector<Field> fields, ReservoirOptions options, std::uint64_t seed);

  const std::vector<Field>& fields() const { return fields_; }
  const ReservoirOptions& options() const { return options_; }
  std::size_t sample_bytes() const;

  // Returns the slots of past samples for the next batch of `batch` samples, each slot at most once; fewer than the
  // fraction of the options until so many are held.
  std::vector<std::int64_t> draw(std::int64_t batch) const;
  std::int64_t made() const { return counts_.batches; }  // number of batches that end_batch() ended
  // Copies the fields of the sample in `slot` to `out`, and returns its id.
  std::int64_t read(std::int64_t slot, std::span<std::byte* const> out) const;
  // Offers a new sample of the present batch.
  void put(std::int64_t id, std::span<std::byte* const> sample);
  void end_batch();

  // The oldest batch that end_batch() ended is trained: it becomes part of the state.
  void release();
  Counts counts() const;  // of the state
  // The state, while other threads cannot change it; release it soon: end_batch() and put() wait.
  class Frozen;
  Frozen freeze() const;
  // Replaces the state before the first batch; counts.held is the number of samples. Throws Error if they do not fit.
  void restore(std::vector<Sample> samples, const Counts& counts);

 private:
  struct Change {
    std::int64_t slot;
    Sample before;
  };
  struct Batch {  // made ahead
    Counts before;
    std::vector<Change> changes;
  };
  std::int64_t slot_for(std::int64_t offered) const;

  std::vector<Field> fields_;
  ReservoirOptions options_;
  std::uint64_t seed_;
  mutable std::mutex mutex_;  // the thread that makes batches takes it to change the members below, others to read them
  std::vector<Sample> samples_;
  Counts counts_;
  std::deque<Batch> ahead_;
  bool open_ = false;          // the last one of ahead_ is being made
  std::vector<Sample> spare_;  // memory for samples
};

class Reservoir::Frozen {
 public:
  const Counts& counts() const { return counts_; }
  const Sample& at(std::int64_t slot) const;

 private:
  friend class Reservoir;
  explicit Frozen(const Reservoir& reservoir);

  const Reservoir& reservoir_;
  std::unique_lock<std::mutex> lock_;
  Counts counts_;
  std::map<std::int64_t, const Sample*> before_;  // slots that batches made ahead have changed
};

}  // namespace lockstep::data
