// A data set in the memory of all ranks together: each rank reads a part of another set once and keeps it, and before
// each step ranks send each other the samples that the step needs. For data that is larger than the memory of a node
// and smaller than that of the job, or that is slow to read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/tensor.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"

namespace lockstep::data {

// A data set for a Loader whose LoaderOptions::supply is this object. Rank r keeps samples part_of(size, ranks, r). The
// samples of a step, on all ranks, are exchanged in Loader::next(), before the loader's threads read them, so all ranks
// call next() equally often, and construct and seek loaders together; a loader of an evaluation that ranks may leave at
// different batches does not fit. One loader at a time. Any thread may read samples that are there.
class SampleStore : public Dataset, public SampleSupply {
 public:
  // Reads this rank's part of `source`, which is not used later, by `threads` threads. `ranks` is duplicated.
  // Collective; throws AgreedError on all ranks if one cannot read a sample, or if the sets differ in size or fields.
  SampleStore(const Dataset& source, const comm::Communicator& ranks, int threads = 1);

  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return classes_; }
  std::string describe() const override { return description_; }
  // Throws Error for a sample that is neither this rank's nor brought.
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  // Collective: every rank names the samples that it needs, in any order.
  void bring(std::span<const std::int64_t> samples) override;
  void release(std::span<const std::int64_t> samples) override;
  void clear() override;

  std::size_t bytes() const { return static_cast<std::size_t>(mine_.size()) * sample_bytes_; }  // of this rank's part
  std::size_t brought() const;  // samples of other ranks that are here

 private:
  // A sample of another rank, which goes when all that asked for it have released it.
  struct Guest {
    std::unique_ptr<std::byte[]> bytes{};
    std::int64_t uses = 0;
  };
  void read_part(const Dataset& source, Range part);
  std::byte* own(std::int64_t index) const;
  int owner(std::int64_t index) const;
  std::map<std::int64_t, std::int64_t> hold(std::span<const std::int64_t> samples);
  std::vector<std::byte> exchange(const std::vector<std::int64_t>& wanted) const;

  comm::Communicator ranks_;
  std::vector<Field> fields_;
  std::int64_t size_, classes_;
  std::string description_;
  std::size_t sample_bytes_ = 0;
  Range mine_{};
  AlignedBuffer memory_;  // of this rank's samples
  mutable std::mutex mutex_;
  std::unordered_map<std::int64_t, Guest> guests_;
};

}  // namespace lockstep::data
