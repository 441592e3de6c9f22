// Loads samples that user code produces one by one (a simulation, a queue, a socket), each once, without a known end.
// Each rank pulls its own samples. One thread pulls and transforms ahead; one thread at a time calls the loader. Ranks
// agree on the end in the training loop: a rank whose stream has ended takes part without samples until all have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/pipeline.h"
#include "lockstep/data/prefetch.h"
#include "lockstep/data/reservoir.h"

namespace lockstep::data {

// The memory of one sample, which the user's function fills.
struct StreamSample {
  std::span<std::byte* const> fields;  // field i has StreamOptions::fields[i].bytes() bytes
  std::int64_t id = 0;                 // first_id + k * id_stride for the k-th sample; the user may set another one
  std::span<const Field> types = {};   // StreamOptions::fields
  // The loader requests a stop when the run needs no further sample. A function that may wait for long looks at this
  // token, or waits with it (std::condition_variable_any), and returns false.
  std::stop_token stop = {};

  // Returns the elements of field i. Throws Error if there is no such field, or its elements are not of type T.
  template <class T>
  T* field(std::size_t i) const {
    check(i < types.size(), "stream", "there is no field {}, expected one of {} fields", i, types.size());
    check(types[i].dtype == dtype_of<T>, "stream", "field '{}' is {}, field<T>() expects {}", types[i].name,
          name_of(types[i].dtype), name_of(dtype_of<T>));
    return reinterpret_cast<T*>(fields[i]);
  }
};

struct StreamOptions {
  std::vector<Field> fields{};
  // Fills the next sample and returns true; returns false at the end. Called by one thread at a time, which is not the
  // caller's thread if prefetch > 0. The loader's destructor requests StreamSample::stop and waits until the function
  // returns.
  std::function<bool(StreamSample&)> pull{};
  std::int64_t batch = 1;  // samples in a batch of this rank; the last batch may have fewer
  std::int64_t first_id = 0, id_stride = 1;
  int prefetch = 2;        // batches made ahead; 0: next() calls `pull` in the caller's thread
  std::uint64_t seed = 0;  // seed of the transforms, which take the id as index and 0 as epoch
  Transforms transforms{};
  std::optional<DType> floats{};  // see LoaderOptions::floats
  // Past samples that are a part of each batch, if given; its fields are `fields`. A sample is transformed anew each
  // time it is trained: with 1 plus the number of the batch as epoch.
  std::shared_ptr<Reservoir> reservoir{};

  // Returns these options with ids that differ on all `size` ranks. With equal ids, ranks would draw the same random
  // numbers in dropout and transforms.
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
  ~StreamLoader() { stop_.request_stop(); }

  // Returns the next batch; nullopt at the end and after it. In Batch::step, `samples` are ids, `offset` is the number
  // of this rank's earlier new samples, and `global_size` and `local` describe this rank alone. Past samples of the
  // reservoir come first. Throws the exception of `pull` after the complete batches before it, and at every later call.
  std::optional<Batch> next();
  // Returns a batch's memory to the loader, for a later batch.
  void recycle(Batch batch) { memory_.give_back(std::move(batch.fields)); }

  std::int64_t consumed() const { return consumed_; }  // number of new samples that next() has returned
  const std::vector<Field>& fields() const { return pipeline_.fields(); }

 private:
  struct Turn {};  // permission to pull one batch
  struct Pulled {
    Batch batch;
    std::int64_t after;  // number of new samples up to its end
  };
  std::optional<Turn> claim();
  std::optional<Pulled> pull_batch();
  void replay(Batch& batch);
  bool pull(std::span<std::byte* const> out, std::int64_t& id) const;

  StreamOptions options_;
  std::stop_source stop_;
  Pipeline pipeline_;
  SampleMaker maker_;
  BatchMemory memory_;
  std::int64_t pulled_ = 0, consumed_ = 0;
  bool ended_ = false;
  std::exception_ptr error_;
  OrderedPrefetch<Turn, std::optional<Pulled>> prefetch_;  // last: its thread uses the members above
};

}  // namespace lockstep::data
