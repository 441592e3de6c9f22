#include "lockstep/parallel/tables/table_engine.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/parallel/tables/row_reduction.h"
#include "lockstep/parallel/tables/table_contents.h"
#include "lockstep/parallel/tables/table_lookups.h"
#include "lockstep/parallel/tables/table_store.h"
#include "lockstep/parallel/tables/updated_steps.h"

namespace lockstep::parallel {
namespace {

RowOwners owners_of(const comm::Communicator& comm, const NodeMemory& memory, const TableOptions& options) {
  if (options.shard && comm.size() > 1) {
    check(comm.size() <= RowDeal::kClasses, "tables", "tables sharded over {} ranks, expected at most {}", comm.size(),
          RowDeal::kClasses);
    return RowOwners::of_shards(comm.rank(), comm.size(), options.placement);
  }
  return RowOwners::of_copies(memory.domains(), memory.shares());
}

// Copies the rows of these numbers, one after the other; most of them are in no cache.
template <class T>
void copy_rows(const T* from, std::span<const std::int64_t> rows, std::int64_t width, T* to) {
  constexpr std::int64_t kAhead = 16;
  parallel_for(std::ssize(rows), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) __builtin_prefetch(from + rows[static_cast<std::size_t>(i + kAhead)] * width);
      copy_row(from + rows[static_cast<std::size_t>(i)] * width, to + i * width, width);
    }
  });
}

template <class T>
class TypedTableEngine final : public TableEngine {
 public:
  TypedTableEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory, const Setup& setup)
      : comm_(comm),
        store_(comm, memory, owners_of(comm, memory, setup.options), setup.tables, setup.options.rules, setup.seed),
        contents_(comm, store_, setup.options.changes),
        updated_(memory, store_.owners()),
        hot_(make_hot(setup.options.hot_rows)),
        clip_value_(setup.clip_value),
        reduction_(comm, world, store_, hot_.get(), setup.options.exchange, waiting_) {
    if (store_.owners().sharded) lookups_.emplace(comm, store_, hot_.get(), waiting_);
  }

  DType dtype() const override { return dtype_of<T>; }
  void while_waiting(std::function<void()> work) override { waiting_ = std::move(work); }

  void lookup(const Table& table, std::span<const std::int64_t> rows, void* values) override {
    const std::size_t t = store_.find(table);
    auto* const to = static_cast<T*>(values);
    if (lookups_) return lookups_->lookup(t, rows, to);
    settle();
    copy_rows(store_[t].data(-1), rows, table.width, to);
  }
  void add_gradient(const Table& table, std::span<const std::int64_t> rows, const void* gradient) override {
    reduction_.add(store_.find(table), rows, static_cast<const T*>(gradient));
  }

  void begin_step() override {
    ++step_;
    if (hot_) hot_->begin_step(step_);
    reduction_.begin_step();
    begin_passes();
  }
  bool is_sharded() const override { return lookups_.has_value(); }
  void announce(std::span<const TableUse> uses) override { lookups_->announce(uses); }
  void begin_lookups(std::span<const TableUse> uses, bool more) override { lookups_->begin_lookups(uses, more); }
  void begin_shard() override { reduction_.begin_shard(); }
  void begin_pass(int gradients, bool last) override { reduction_.begin_pass(gradients, last); }
  void end_shard() override { reduction_.end_shard(); }
  void begin_passes() override {
    if (lookups_) lookups_->begin_passes();
  }
  void end_passes() override {
    if (lookups_) lookups_->end_passes();
  }

  void open(bool squares) override { reduction_.open(squares); }
  bool advance() override {
    const bool moved = lookups_ && lookups_->advance();
    return reduction_.advance() || moved;
  }
  bool is_reduced() const override { return reduction_.is_reduced(); }
  double squares() const override { return reduction_.squares(); }
  void update(const StepState& step) override {
    if (step.applies()) {
      const Trace::Scope span(trace_, Trace::Track::Update, "rows of step", step.update.count);
      values_change();
      update_rows(step.update);
    }
    updated_.set(step_);
    reduction_.end_step();
  }
  bool is_updated() const override { return reduction_.is_updated(); }

  const std::vector<TableTensor>& tensors() const override { return contents_.tensors(); }
  bool is_root() const override { return comm_.is_root(); }
  Tensor read(const TableTensor& tensor, Range rows, bool wanted) override {
    settle();
    return contents_.read(tensor, rows, wanted);
  }
  void write(const TableTensor& tensor, Range rows, const Tensor& values) override {
    rows_are_written();
    contents_.write(tensor, rows, values);
  }
  void reset(const Table& table, std::span<const std::int64_t> rows) override {
    rows_are_written();
    contents_.reset(table, rows);
  }
  void clear_changes() override { contents_.clear_changes(); }
  void mark_change(std::size_t table, std::int64_t row) override { contents_.mark_change(table, row); }
  std::vector<std::int64_t> count_changes() override { return contents_.count_changes(); }
  RowChanges read_changes(const TableTensor& tensor, Range rows) override {
    settle();
    return contents_.read_changes(tensor, rows);
  }
  void settle() override {
    const std::uint64_t last = reduction_.is_updated() ? step_ : step_ - 1;  // the last step that is updated here
    for (Backoff wait; !updated_.all_reached(last); wait.pause()) waiting_();
  }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string describe() const override;
  void note_in(Trace* trace) override {
    trace_ = trace;
    reduction_.note_in(trace);
    if (lookups_) lookups_->note_in(trace);
  }

 private:
  void values_change() {
    if (lookups_) lookups_->forget();
  }
  void rows_are_written() {  // by another function than update()
    settle();
    values_change();
    if (hot_) hot_->forget();
  }
  std::unique_ptr<HotRows<T>> make_hot(std::int64_t rows) {
    if (rows == 0 || !store_.owners().sharded) return nullptr;
    return std::make_unique<HotRows<T>>(comm_, store_, rows, waiting_);
  }
  void update_rows(const UpdateStep& step);
  template <class Locate>
  void update_table(std::size_t t, const RowView<T>& sums, const UpdateStep& step, const Locate& locate);

  const comm::Communicator& comm_;
  std::function<void()> waiting_ = [] {};
  TableStore<T> store_;
  TableContents<T> contents_;
  UpdatedSteps updated_;
  std::unique_ptr<HotRows<T>> hot_;  // null: there are none
  double clip_value_;
  RowReduction<T> reduction_;
  std::optional<TableLookups<T>> lookups_;  // of sharded tables
  std::uint64_t step_ = 0;
  Trace* trace_ = nullptr;
};

template <class T>
void TypedTableEngine<T>::update_rows(const UpdateStep& step) {
  for (std::size_t t = 0; t < store_.count(); ++t) {
    const auto& stored = store_[t];
    const RowView<T>& sums = reduction_.sums()[t];
    update_table(t, sums, step, [&](std::int64_t i, int part) {
      return store_.row(stored, sums.ids[static_cast<std::size_t>(i)], part);
    });
  }
  if (!hot_) return;
  hot_->each_sum([&](std::size_t t, const RowView<T>& sums) {
    const std::span<const std::int64_t> ids = hot_->ids(t);
    update_table(t, sums, step, [&](std::int64_t i, int part) {
      const auto at = std::ranges::lower_bound(ids, sums.ids[static_cast<std::size_t>(i)]);
      return hot_->row(t, static_cast<std::size_t>(at - ids.begin()), part);
    });
  });
}

// `locate` gives the elements of the i-th row of the sums.
template <class T>
template <class Locate>
void TypedTableEngine<T>::update_table(std::size_t t, const RowView<T>& sums, const UpdateStep& step,
                                       const Locate& locate) {
  constexpr std::int64_t kAhead = 16;  // rows whose memory is asked for early, as it is in no cache
  const auto& stored = store_[t];
  const optim::RowUpdate<T> rule(stored.rule, {.learning_rate = step.learning_rate,
                                               .gradient_scale = step.gradient_scale,
                                               .clip_value = clip_value_,
                                               .count = step.count});
  const std::int64_t width = stored.table().width;
  const int parts = static_cast<int>(stored.states.size());
  parallel_for(sums.count(), width, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::size_t kMostStates = 2;
    std::array<T*, kMostStates> states{};
    for (std::int64_t i = begin; i < end; ++i) {
      for (int part = -1; part < parts && i + kAhead < end; ++part) __builtin_prefetch(locate(i + kAhead, part), 1);
      for (int s = 0; s < parts; ++s) states[static_cast<std::size_t>(s)] = locate(i, s);
      rule(width, sums.rows + i * width, locate(i, -1), {states.data(), stored.states.size()});
      contents_.mark_change(t, sums.ids[static_cast<std::size_t>(i)]);
    }
  });
}

template <class T>
std::string TypedTableEngine<T>::describe() const {
  std::int64_t rows = 0;
  for (std::size_t t = 0; t < store_.count(); ++t) rows += store_[t].table().rows;
  const RowOwners& owners = store_.owners();
  const std::string where = owners.sharded             ? formatted("sharded over {} ranks", owners.mine().size())
                            : owners.mine().size() > 1 ? "once per node, each rank updates a part"
                                                       : "each rank has its own";
  return formatted("{} sparse table{} of {} rows in all: {}; {} MiB on this {}", store_.count(),
                   store_.count() == 1 ? "" : "s", rows, where, (store_.bytes() + (1 << 20) - 1) >> 20,
                   owners.sharded || owners.mine().size() == 1 ? "rank" : "node");
}

}  // namespace

std::shared_ptr<TableEngine> TableEngine::make(const comm::Communicator& comm, const WorldLayout& world,
                                               NodeMemory& memory, const Setup& setup) {
  for (const NamedTable& named : setup.tables) {
    check(named.table->store.expired(), "tables",
          "'{}' has a store already: another Trainer or Predictor uses this module; expected one at a time",
          named.name);
    optim::check_row_rule(setup.options.rules.of(named.name));
  }
  std::shared_ptr<TableEngine> engine;
  if (setup.dtype == DType::F64) {
    engine = std::make_shared<TypedTableEngine<double>>(comm, world, memory, setup);
  } else {
    engine = std::make_shared<TypedTableEngine<float>>(comm, world, memory, setup);
  }
  for (const NamedTable& named : setup.tables) named.table->store = engine;
  return engine;
}

}  // namespace lockstep::parallel
