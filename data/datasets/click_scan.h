// Passes over the ids of a set of clicks, which the ranks of a job share.
#pragma once

#include <cstdint>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::datasets {

// Calls take(sample, ids) for a part of the samples, which is this rank's.
template <class Take>
void each_ids(const data::Dataset& set, const comm::Communicator* comm, const Take& take) {
  const Range mine = comm == nullptr ? Range{0, set.size()} : part_of(set.size(), comm->size(), comm->rank());
  data::SampleBuffers sample(set.fields());
  const std::size_t ids = data::find_field("ids", set.fields(), "ids");
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    set.read(i, sample.out);
    take(i, reinterpret_cast<const std::int64_t*>(sample.out[ids]));
  }
}

}  // namespace lockstep::datasets
