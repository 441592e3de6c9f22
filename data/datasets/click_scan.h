// Passes over the ids of a set of clicks, which the ranks of a job share.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

// Runs `work`, and throws on all ranks if it throws on one; null: this process alone.
template <class Work>
auto together(const comm::Communicator* comm, const Work& work) {
  return comm == nullptr ? work() : comm::collectively(*comm, work);
}

// Calls take(sample, ids) for a part of the samples, which is this rank's.
template <class Take>
void each_ids(const data::Dataset& set, const comm::Communicator* comm, const Take& take) {
  const Range mine = comm == nullptr ? Range{0, set.size()} : part_of(set.size(), comm->size(), comm->rank());
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> out;
  for (const data::Field& field : set.fields()) out.push_back(memory.emplace_back(field.bytes()).data());
  const std::size_t ids = data::find_field("ids", set.fields(), "ids");
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    set.read(i, out);
    take(i, reinterpret_cast<const std::int64_t*>(out[ids]));
  }
}

}  // namespace lockstep::datasets
