#include "lockstep/train/runner/table_lookahead.h"

#include <algorithm>

#include "lockstep/ops/table.h"
#include "lockstep/parallel/tables/table_engine.h"

namespace lockstep::train {
namespace {

using Position = std::array<std::int64_t, 3>;

// The position is equal on all ranks; empty: a streamed batch has none.
std::optional<Position> position_of(const LocalBatch& local) {
  if (local.global_size < 0) return {};
  return Position{local.batch->step.epoch, local.batch->step.offset, local.global_size};
}

// The field's rows of a batch; null: the batch does not have them, which is an error once it is trained.
const std::byte* rows_of(const data::Batch& batch, const data::Field& field, Range rows) {
  const auto name = std::ranges::find(batch.names, field.name);
  if (name == batch.names.end()) return nullptr;
  const Tensor& tensor = batch.fields[static_cast<std::size_t>(name - batch.names.begin())];
  if (tensor.dtype() != field.dtype || !tensor.shape().has_tail(field.shape) || rows.begin < 0 ||
      tensor.shape()[0] < rows.end)
    return nullptr;
  return tensor.raw() + static_cast<std::size_t>(rows.begin) * field.bytes();
}

}  // namespace

void TableLookahead::begin(const LocalBatch& local) {
  parallel::TableEngine* const tables = prepared_.tables();
  if (tables == nullptr || !tables->is_sharded()) return;
  const Uses& uses = uses_of(local);
  const std::optional<Position> position = position_of(local);
  if (!position || announced_ != position) tables->announce(uses.known);
  announced_.reset();
  tables->begin_lookups(uses.known, uses.more);
  if (!next_) return;
  tables->announce(uses_of(*next_).known);
  announced_ = position_of(*next_);
}

const std::vector<TableLookahead::Lookup>& TableLookahead::lookups_of(const plan::Plan& plan) {
  const auto [entry, is_new] = lookups_.try_emplace(&plan);
  if (!is_new) return entry->second;
  for (const plan::PlanStep& step : plan.steps()) {
    const auto* op = dynamic_cast<const TableLookupOp*>(step.op.get());
    if (op == nullptr) continue;
    const auto field = std::ranges::find(prepared_.fields(), plan.field(step, 1), &data::Field::name);
    const bool found = field != prepared_.fields().end() &&
                       step.input_types[1].shape.elements() == plan.batch() * field->shape.elements();
    entry->second.push_back({&op->table(), found ? &*field : nullptr});
  }
  return entry->second;
}

const TableLookahead::Uses& TableLookahead::uses_of(const LocalBatch& local) {
  uses_.known.clear();
  uses_.more = false;
  const std::int64_t accumulate = prepared_.options().accumulate;
  const Range mine = prepared_.world().my_shards();
  for (std::int64_t number = mine.begin; number < mine.end; ++number) {
    const Range shard = local.shard(prepared_.world().tree.shards(), number);
    for (std::int64_t micro = 0; micro < accumulate; ++micro) {
      const Range rows = local.rows(shard, accumulate, micro);
      if (rows.size() > 0) add_pass(local, rows, uses_);
    }
  }
  return uses_;
}

void TableLookahead::add_pass(const LocalBatch& local, Range rows, Uses& uses) {
  for (const Lookup& lookup : lookups_of(feed_.plan(Mode::Train, rows.size()))) {
    const std::byte* const ids = lookup.field == nullptr ? nullptr : rows_of(*local.batch, *lookup.field, rows);
    uses.more = uses.more || ids == nullptr;
    if (ids == nullptr) continue;
    uses.known.push_back({.table = lookup.table,
                          .ids = ids,
                          .dtype = lookup.field->dtype,
                          .count = rows.size() * lookup.field->shape.elements()});
  }
}

}  // namespace lockstep::train
