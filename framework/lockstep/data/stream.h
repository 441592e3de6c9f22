// Samples that come one by one from user code (a simulation, a queue, a socket), each once, without a known end. Each
// rank pulls its own. One thread pulls and transforms ahead; one caller thread. The end is agreed by the training loop:
// a rank whose stream has ended goes on with no samples until all have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/pipeline.h"
#include "lockstep/data/prefetch.h"

namespace lockstep::data {

struct StreamSample {
  std::span<std::byte* const> fields;  // to be filled: field i has StreamOptions::fields[i].bytes() bytes
  std::int64_t id = 0;                 // first_id + k * id_stride for the k-th sample, unless the user sets another
  std::span<const Field> types = {};   // StreamOptions::fields

  // The elements of field i. Throws Error if there is no such field, or its elements are not of type T.
  template <class T>
  T* field(std::size_t i) const {
    check(i < types.size(), "stream", "field {} is asked for, there are {}", i, types.size());
    check(types[i].dtype == dtype_of<T>, "stream", "field '{}' is {}, asked for {}", types[i].name,
          name_of(types[i].dtype), name_of(dtype_of<T>));
    return reinterpret_cast<T*>(fields[i]);
  }
};

struct StreamOptions {
  std::vector<Field> fields{};
  // Fills the next sample and returns true, or returns false at the end. Runs on one thread at a time, which is not the
  // caller's if prefetch > 0. Destroying the loader waits for the pull under way.
  std::function<bool(StreamSample&)> pull{};
  std::int64_t batch = 1;  // samples in a batch of this rank; the last may have fewer
  std::int64_t first_id = 0, id_stride = 1;
  int prefetch = 2;        // batches ahead; 0: next() pulls
  std::uint64_t seed = 0;  // of transforms, with the id as index and epoch 0
  Transforms transforms{};
  std::optional<DType> floats{};  // as LoaderOptions::floats

  // The same with ids that no two of `size` ranks share: without it ranks draw the same random numbers, in dropout and
  // in transforms.
  StreamOptions for_rank(int rank, int size) const {
    StreamOptions mine = *this;
    mine.first_id = rank;
    mine.id_stride = size;
    return mine;
  }
};

class StreamLoader {
 public:
  explicit StreamLoader(StreamOptions options);

  // Batch.step: samples are ids, offset counts what this rank had before, global_size and local are this rank's alone.
  // nullopt at the end, and from then on. An exception of `pull` leaves next() after the whole batches before it, and
  // again at every further call.
  std::optional<Batch> next();
  void recycle(Batch batch) { memory_.give_back(std::move(batch.fields)); }

  std::int64_t consumed() const { return consumed_; }  // samples handed out by next()
  const std::vector<Field>& fields() const { return pipeline_.fields(); }

 private:
  struct Turn {};  // permission to pull one batch
  std::optional<Turn> claim();
  std::optional<Batch> pull_batch();
  bool pull(std::span<std::byte* const> out, std::int64_t& id) const;

  StreamOptions options_;
  Pipeline pipeline_;
  SampleMaker maker_;
  BatchMemory memory_;
  std::int64_t pulled_ = 0, consumed_ = 0;
  bool ended_ = false;
  std::exception_ptr error_;
  OrderedPrefetch<Turn, std::optional<Batch>> prefetch_;  // last: its thread uses the members above
};

}  // namespace lockstep::data
