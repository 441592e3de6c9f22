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

// Ids of field f become rows of its table; labels become 0 or 1.
inline void make_clicks(const Subject& subject, data::Batch& batch) {
  if (subject.rows_per_field == 0) return;
  Tensor& ids = batch.at("ids");
  const std::int64_t fields = ids.shape()[1];
  for (std::int64_t i = 0; i < ids.shape().elements(); ++i)
    ids.data<std::int32_t>()[static_cast<std::size_t>(i)] +=
        static_cast<std::int32_t>(i % fields * subject.rows_per_field);
  Tensor& labels = batch.at("label");
  const auto to_flags = [](auto values) {
    for (auto& v : values) v = v > 0 ? 1 : 0;
  };
  labels.dtype() == DType::F64 ? to_flags(labels.data<double>()) : to_flags(labels.data<float>());
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
  make_clicks(subject, batch);
  batch.step.global_size = o.per_rank * comm.size();
  batch.step.local = local;
  for (std::int64_t i = batch.step.local.begin; i < batch.step.local.end; ++i) batch.step.samples.push_back(i);
  return batch;
}

}  // namespace lockstep::bench
