#include "lockstep/parallel/tables/table_engine.h"

#include <algorithm>
#include <array>

#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/parallel/tables/changed_rows.h"
#include "lockstep/parallel/tables/row_collector.h"
#include "lockstep/parallel/tables/row_exchange.h"
#include "lockstep/parallel/tables/row_service.h"
#include "lockstep/parallel/tables/row_squares.h"
#include "lockstep/parallel/tables/table_store.h"
#include "lockstep/parallel/tables/table_tensors.h"
#include "lockstep/parallel/tables/updated_steps.h"

namespace lockstep::parallel {
namespace {

RowOwners owners_of(const comm::Communicator& comm, const NodeMemory& memory, bool shard) {
  if (shard && comm.size() > 1) {
    check(comm.size() <= RowDeal::kClasses, "tables", "tables sharded over {} ranks, expected at most {}", comm.size(),
          RowDeal::kClasses);
    return RowOwners::of_shards(comm.rank(), comm.size());
  }
  return RowOwners::of_copies(memory.domains(), memory.shares());
}

template <class T>
class TypedTableEngine final : public TableEngine {
 public:
  TypedTableEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory, const Setup& setup)
      : comm_(comm),
        store_(memory, owners_of(comm, memory, setup.options.shard), setup.tables, setup.options.rules, setup.seed),
        tensors_(list_tensors(store_)),
        changed_(setup.options.changes ? ChangedRows(own_rows()) : ChangedRows()),
        updated_(memory, store_.owners()),
        collector_(world, widths()),
        exchange_(comm, world, store_.owners(), widths()),
        squares_(comm),
        lookups_(comm, store_, waiting_) {}

  DType dtype() const override { return dtype_of<T>; }
  void while_waiting(std::function<void()> work) override { waiting_ = std::move(work); }

  void lookup(const Table& table, std::span<const std::int64_t> rows, void* values) override {
    const std::size_t t = store_.find(table);
    auto* const to = static_cast<T*>(values);
    if (store_.owners().sharded) return lookups_.lookup(t, rows, to);
    settle();
    const std::int64_t width = table.width;
    const T* const from = store_[t].data(-1);
    parallel_for(std::ssize(rows), width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        std::copy_n(from + rows[static_cast<std::size_t>(i)] * width, width, to + i * width);
    });
  }
  void add_gradient(const Table& table, std::span<const std::int64_t> rows, const void* gradient) override {
    collector_.add(store_.find(table), table, rows, static_cast<const T*>(gradient));
    start_exchange();
  }

  void begin_step() override {
    ++step_;
    phase_ = Phase::Computing;
    is_open_ = false;
    collector_.begin_step();
    begin_passes();
  }
  void begin_shard() override { collector_.begin_shard(); }
  void begin_pass(int gradients, bool last) override { collector_.begin_pass(gradients, last); }
  void end_shard() override {
    collector_.end_shard();
    start_exchange();
  }
  void begin_passes() override {
    if (store_.owners().sharded) lookups_.begin();
  }
  void end_passes() override { lookups_.end(); }

  void open(bool squares) override {
    wants_squares_ = squares;
    is_open_ = true;
  }
  bool advance() override;
  bool is_reduced() const override { return phase_ == Phase::Reduced || phase_ == Phase::Updated; }
  double squares() const override { return squares_.sum(); }
  void update(const StepState& step) override {
    if (step.applies()) {
      for (std::size_t t = 0; t < store_.count(); ++t) update_table(t, step.update);
    }
    updated_.set(step_);
    phase_ = Phase::Updated;
  }
  bool is_updated() const override { return phase_ == Phase::Updated; }

  const std::vector<TableTensor>& tensors() const override { return tensors_; }
  bool is_root() const override { return comm_.is_root(); }
  Tensor read(const TableTensor& tensor, Range rows, bool wanted) override {
    settle();
    return read_rows(comm_, store_, tensor, rows, wanted);
  }
  void write(const TableTensor& tensor, Range rows, const Tensor& values) override {
    settle();
    write_rows(store_, tensor, rows, values);
    for (std::int64_t row = rows.begin; changed_.counts() && row < rows.end; ++row) mark_change(tensor.number, row);
  }
  void reset(const Table& table, std::span<const std::int64_t> rows) override {
    settle();
    const std::size_t t = store_.find(table);
    std::vector<double> scratch(static_cast<std::size_t>(table.width));
    for (const std::int64_t row : rows) {
      if (store_.owns(row)) store_.reset(store_[t], row, scratch);
      mark_change(t, row);
    }
    comm_.barrier();  // other ranks of the node read these rows
  }
  void clear_changes() override { changed_.clear(); }
  void mark_change(std::size_t table, std::int64_t row) override {
    if (store_.owns(row)) changed_.mark(table, store_.deal().local(row));
  }
  std::vector<std::int64_t> count_changes() override {
    std::vector<std::int64_t> counts(store_.count());
    for (std::size_t t = 0; store_.owners().mine().front() == 0 && t < counts.size(); ++t)
      counts[t] = changed_.count(t);
    comm_.allreduce(comm::Buffer(counts), comm::ReduceOp::Sum);
    return counts;
  }
  RowChanges read_changes(const TableTensor& tensor, Range rows) override {
    settle();
    return read_changed_rows(comm_, store_, changed_, tensor, rows);
  }
  void settle() override {
    const std::uint64_t last = phase_ == Phase::Updated ? step_ : step_ - 1;  // the last step that is updated here
    for (Backoff wait; !updated_.all_reached(last); wait.pause()) waiting_();
  }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string describe() const override;

 private:
  enum class Phase : std::uint8_t { Updated, Computing, Exchanging, Squaring, Reduced };

  std::vector<std::int64_t> widths() const {
    std::vector<std::int64_t> all;
    for (std::size_t t = 0; t < store_.count(); ++t) all.push_back(store_[t].table().width);
    return all;
  }
  std::vector<std::int64_t> own_rows() const {
    std::vector<std::int64_t> all;
    for (std::size_t t = 0; t < store_.count(); ++t)
      all.push_back(store_.deal().rows_below(store_.owners().me, store_[t].table().rows));
    return all;
  }
  // Sends the rows of the last shard as soon as they are complete.
  void start_exchange() {
    if (phase_ != Phase::Computing || !collector_.is_complete()) return;
    exchange_.start(collector_.sums());
    phase_ = Phase::Exchanging;
  }
  void update_table(std::size_t t, const UpdateStep& step);

  const comm::Communicator& comm_;
  std::function<void()> waiting_ = [] {};
  TableStore<T> store_;
  std::vector<TableTensor> tensors_;
  ChangedRows changed_;
  UpdatedSteps updated_;
  RowCollector<T> collector_;
  RowExchange<T> exchange_;
  RowSquares<T> squares_;
  RowService<T> lookups_;
  std::uint64_t step_ = 0;
  Phase phase_ = Phase::Updated;
  bool is_open_ = false, wants_squares_ = false;
};

template <class T>
bool TypedTableEngine<T>::advance() {
  bool moved = false;
  if (!is_open_) return moved;  // the caller's state is still that of the last step
  if (phase_ == Phase::Exchanging) {
    moved = exchange_.advance();
    if (!exchange_.done()) return moved;
    if (wants_squares_) squares_.start(store_, exchange_.sums());
    phase_ = Phase::Squaring;
    moved = true;
  }
  if (phase_ == Phase::Squaring && (!wants_squares_ || squares_.advance())) {
    phase_ = Phase::Reduced;
    moved = true;
  }
  return moved;
}

template <class T>
void TypedTableEngine<T>::update_table(std::size_t t, const UpdateStep& step) {
  const auto& stored = store_[t];
  const RowSet<T>& sums = exchange_.sums()[t];
  const optim::RowUpdate<T> rule(
      stored.rule, {.learning_rate = step.learning_rate, .gradient_scale = step.gradient_scale, .count = step.count});
  const std::int64_t width = stored.table().width;
  parallel_for(sums.count(), width, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::size_t kMostStates = 2;
    std::array<T*, kMostStates> states{};
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = sums.ids[static_cast<std::size_t>(i)];
      for (std::size_t s = 0; s < stored.states.size(); ++s) states[s] = store_.row(stored, row, static_cast<int>(s));
      rule(width, sums.rows.data() + i * width, store_.row(stored, row), {states.data(), stored.states.size()});
      changed_.mark(t, store_.deal().local(row));
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
