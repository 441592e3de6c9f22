// One rank's part of a random global batch for a model of the zoo, the same in every run.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/core/random.h"
#include "lockstep/data/batch.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "models/zoo/registry.h"

namespace lockstep::bench {

struct BatchOptions {
  std::int64_t per_rank = 1, shards = 0;
  DType dtype = DType::F32;  // of images: f32 or f64
};

inline data::Batch random_batch(const models::ModelEntry& entry, const BatchOptions& o,
                                const comm::Communicator& comm) {
  const parallel::WorldLayout world(comm.rank(), comm.size(), o.shards);
  const auto begin_of = [&](std::int64_t shard) {
    return part_of(o.per_rank * comm.size(), world.tree.shards(), shard).begin;
  };
  const Range local{begin_of(world.my_shards().begin), begin_of(world.my_shards().end)};
  RandomStream random(1, static_cast<std::uint64_t>(comm.rank()));
  Tensor images(entry.image.batched(local.size()), o.dtype), labels(Shape{local.size()}, DType::I32);
  if (images.dtype() == DType::F64) {
    for (double& v : images.data<double>()) v = random.normal();
  } else {
    for (float& v : images.data<float>()) v = static_cast<float>(random.normal());
  }
  for (std::int32_t& label : labels.data<std::int32_t>())
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(entry.classes)));
  data::Batch batch;
  batch.names = {"image", "label"};
  batch.fields.push_back(std::move(images));
  batch.fields.push_back(std::move(labels));
  batch.step.global_size = o.per_rank * comm.size();
  batch.step.local = local;
  for (std::int64_t i = batch.step.local.begin; i < batch.step.local.end; ++i) batch.step.samples.push_back(i);
  return batch;
}

}  // namespace lockstep::bench
