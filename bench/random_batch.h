// One rank's part of a random global batch for a subject of the benchmark, the same in every run.
#pragma once

#include "bench/subject.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/core/random.h"
#include "lockstep/data/batch.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::bench {

struct BatchOptions {
  std::int64_t per_rank = 1, shards = 0;
};

// Normal numbers, and in an i32 field classes below `classes`.
inline Tensor random_field(const data::Field& field, std::int64_t samples, std::int64_t classes, RandomStream& random) {
  Tensor values(field.shape.batched(samples), field.dtype);
  if (field.dtype == DType::F64) {
    for (double& v : values.data<double>()) v = random.normal();
  } else if (field.dtype == DType::F32) {
    for (float& v : values.data<float>()) v = static_cast<float>(random.normal());
  } else {
    for (std::int32_t& v : values.data<std::int32_t>())
      v = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes)));
  }
  return values;
}

inline data::Batch random_batch(const Subject& subject, const BatchOptions& o, const comm::Communicator& comm) {
  const parallel::WorldLayout world(comm.rank(), comm.size(), o.shards);
  const auto begin_of = [&](std::int64_t shard) {
    return part_of(o.per_rank * comm.size(), world.tree.shards(), shard).begin;
  };
  const Range local{begin_of(world.my_shards().begin), begin_of(world.my_shards().end)};
  RandomStream random(1, static_cast<std::uint64_t>(comm.rank()));
  data::Batch batch;
  for (const data::Field& field : subject.fields) {
    batch.names.push_back(field.name);
    batch.fields.push_back(random_field(field, local.size(), subject.classes, random));
  }
  batch.step.global_size = o.per_rank * comm.size();
  batch.step.local = local;
  for (std::int64_t i = batch.step.local.begin; i < batch.step.local.end; ++i) batch.step.samples.push_back(i);
  return batch;
}

}  // namespace lockstep::bench
