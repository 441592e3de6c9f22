#include "lockstep/parallel/tables/table_engine.h"

#include <algorithm>
#include <array>

#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/shared_number.h"
#include "lockstep/parallel/tables/row_exchange.h"
#include "lockstep/parallel/tables/row_service.h"
#include "lockstep/parallel/tables/row_squares.h"
#include "lockstep/parallel/tables/table_store.h"

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

// The number of steps after which each rank of the group has updated its rows; they share memory.
class UpdatedSteps {
 public:
  UpdatedSteps(NodeMemory& memory, const RowOwners& owners) {
    const auto is_alone = [](const std::vector<int>& group) { return group.size() == 1; };
    if (owners.sharded || std::ranges::all_of(owners.groups, is_alone)) return;  // the same on all ranks
    const std::span<std::byte> mine = memory.own(kLine);
    for (const std::span<std::byte> segment : memory.segments(mine))
      numbers_.push_back(reinterpret_cast<SharedNumber<std::uint64_t>*>(segment.data()));
    me_ = owners.me;
  }
  void set(std::uint64_t step) {
    if (!numbers_.empty()) numbers_[static_cast<std::size_t>(me_)]->store(step, std::memory_order_release);
  }
  bool all_reached(std::uint64_t step) const {
    return std::ranges::all_of(numbers_,
                               [&](const auto* number) { return number->load(std::memory_order_acquire) >= step; });
  }

 private:
  static constexpr std::size_t kLine = 64;
  std::vector<SharedNumber<std::uint64_t>*> numbers_;  // by rank of the group; empty: this rank alone
  int me_ = 0;
};

template <class T>
class TypedTableEngine final : public TableEngine {
 public:
  TypedTableEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory, const Setup& setup)
      : comm_(comm),
        store_(memory, owners_of(comm, memory, setup.options.shard), setup.tables, setup.options.rules, setup.seed),
        updated_(memory, store_.owners()),
        walk_(world),
        slots_(static_cast<std::size_t>(world.my_slots())),
        exchange_(comm, world, store_.owners(), widths()),
        squares_(comm),
        lookups_(comm, store_, waiting_) {
    for (auto& tables : slots_) tables.resize(store_.count());
    pass_.resize(store_.count());
    for (std::size_t t = 0; t < store_.count(); ++t) list_tensors(t);
  }

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

  // A table that is used several times gets the sum of its uses, each rounded, in the order of the graph; the sums of
  // the micro-batches are added after that. So it is with a dense parameter.
  void add_gradient(const Table& table, std::span<const std::int64_t> rows, const void* gradient) override {
    if (!collecting_) return;  // a run outside of a step, which looks for a value that is not finite
    const std::size_t t = store_.find(table);
    RowSet<T>& sum = pass_[t];
    RowSet<T>& into = sum.empty() ? sum : use_;
    sum_uses(sorter_, rows, table.rows, table.zero_row.value_or(-1), table.width, static_cast<const T*>(gradient),
             into);
    if (&into == &use_) add_rows(sum, use_, table.width, scratch_);
    if (++pass_gradients_ == expected_gradients_) end_pass();
  }

  void begin_step() override {
    ++step_;
    walk_.begin();
    phase_ = Phase::Computing;
    opened_ = false;
    collecting_ = true;
    begin_passes();
  }
  void begin_shard() override {
    for (RowSet<T>& rows : slots_[static_cast<std::size_t>(walk_.slot())]) rows.clear();
    for (RowSet<T>& rows : pass_) rows.clear();
    shard_ended_ = false;
  }
  void begin_pass(int gradients, bool last) override {
    pass_gradients_ = 0;
    expected_gradients_ = gradients;
    last_pass_ = last;
  }
  void end_shard() override {
    if (std::exchange(shard_ended_, true)) return;
    walk_.join([&](int from, int into) {
      for (std::size_t t = 0; t < store_.count(); ++t)
        add_rows(slots_[static_cast<std::size_t>(into)][t], slots_[static_cast<std::size_t>(from)][t], width(t),
                 scratch_);
    });
    walk_.next();
    if (!walk_.done()) return;
    collecting_ = false;
    exchange_.start(slots_);
    phase_ = Phase::Exchanging;
  }
  void begin_passes() override {
    if (store_.owners().sharded) lookups_.begin();
  }
  void end_passes() override { lookups_.end(); }

  void open(bool squares) override {
    wants_squares_ = squares;
    opened_ = true;
  }
  bool advance() override {
    bool moved = false;
    if (!opened_) return moved;  // the engine's state is still that of the last step
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
  Tensor read(const TableTensor& tensor, Range rows, bool wanted) override;
  void write(const TableTensor& tensor, Range rows, const Tensor& values) override;
  void settle() override {
    for (Backoff wait; !updated_.all_reached(settled_step()); wait.pause()) waiting_();
  }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string describe() const override;

 private:
  enum class Phase : std::uint8_t { Updated, Computing, Exchanging, Squaring, Reduced };

  std::vector<std::int64_t> widths() const {
    std::vector<std::int64_t> all;
    for (std::size_t t = 0; t < store_.count(); ++t) all.push_back(width(t));
    return all;
  }
  void end_pass() {
    for (std::size_t t = 0; t < store_.count(); ++t) {
      RowSet<T>& sum = slots_[static_cast<std::size_t>(walk_.slot())][t];
      sum.empty() ? std::swap(sum, pass_[t]) : add_rows(sum, pass_[t], width(t), scratch_);
      pass_[t].clear();
    }
    if (last_pass_) end_shard();
  }
  std::int64_t width(std::size_t table) const { return store_[table].table().width; }
  // The last step whose updates values contain when they are read now.
  std::uint64_t settled_step() const { return phase_ == Phase::Updated ? step_ : step_ - 1; }
  void list_tensors(std::size_t t) {
    const auto& stored = store_[t];
    const auto add = [&](std::string state, int part) {
      const bool one = part >= 0 && stored.states[static_cast<std::size_t>(part)].one_per_row;
      const Shape shape = one ? Shape{stored.table().rows} : stored.table().shape();
      tensors_.push_back(
          {.table = stored.named.name, .state = std::move(state), .shape = shape, .number = t, .part = part});
    };
    add("", -1);
    for (std::size_t s = 0; s < stored.states.size(); ++s) add(std::string(stored.states[s].name), static_cast<int>(s));
  }
  void update_table(std::size_t t, const UpdateStep& step);

  const comm::Communicator& comm_;
  std::function<void()> waiting_ = [] {};
  TableStore<T> store_;
  UpdatedSteps updated_;
  ShardWalk walk_;
  typename RowExchange<T>::Partials slots_;
  RowExchange<T> exchange_;
  RowSquares<T> squares_;
  RowService<T> lookups_;
  std::vector<TableTensor> tensors_;
  std::vector<RowSet<T>> pass_;  // by table: the sums of the present pass
  IdSort sorter_;
  RowSet<T> use_, scratch_;
  std::uint64_t step_ = 0;
  int pass_gradients_ = 0, expected_gradients_ = 0;
  bool last_pass_ = false, shard_ended_ = true, collecting_ = false, opened_ = false, wants_squares_ = false;
  Phase phase_ = Phase::Updated;
};

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
    }
  });
}

template <class T>
Tensor TypedTableEngine<T>::read(const TableTensor& tensor, Range rows, bool wanted) {
  settle();
  const auto& stored = store_[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  std::vector<std::int64_t> dims = tensor.shape.dims();
  dims[0] = rows.size();
  if (!store_.owners().sharded) {
    if (!wanted) return {};
    const T* const from = store_.row(stored, rows.begin, tensor.part);
    return Tensor::from<T>(Shape(dims), std::span(from, static_cast<std::size_t>(rows.size() * width)));
  }
  const RowDeal& deal = store_.deal();
  std::vector<std::int64_t> counts;  // elements, by rank
  for (int r = 0; r < comm_.size(); ++r)
    counts.push_back((deal.rows_below(r, rows.end) - deal.rows_below(r, rows.begin)) * width);
  const std::int64_t first = deal.rows_below(comm_.rank(), rows.begin);
  const T* const mine = stored.data(tensor.part) + first * width;
  std::vector<T> all(comm_.is_root() ? static_cast<std::size_t>(rows.size() * width) : 0);
  const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(comm_.rank())]);
  comm_.gatherv(comm::ConstBuffer(std::span(mine, count)), comm::Buffer(all), counts);
  if (!comm_.is_root() || !wanted) return {};
  Tensor result(Shape(dims), dtype_of<T>);
  const T* from = all.data();
  for (int r = 0; r < comm_.size(); ++r) {
    const std::int64_t begin = deal.rows_below(r, rows.begin), end = deal.rows_below(r, rows.end);
    for (std::int64_t i = begin; i < end; ++i, from += width)
      std::copy_n(from, width, result.data<T>().data() + (deal.row(r, i) - rows.begin) * width);
  }
  return result;
}

template <class T>
void TypedTableEngine<T>::write(const TableTensor& tensor, Range rows, const Tensor& values) {
  settle();
  const auto& stored = store_[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  const Tensor typed = values.to(dtype_of<T>);
  check(typed.elements() == rows.size() * width, "tables", "'{}' got {} elements for {} rows, expected {}",
        tensor.table, typed.elements(), rows.size(), rows.size() * width);
  const RowDeal& deal = store_.deal();
  const int me = store_.owners().me;
  for (std::int64_t i = deal.rows_below(me, rows.begin); i < deal.rows_below(me, rows.end); ++i) {
    const std::int64_t row = deal.row(me, i);
    std::copy_n(typed.data<T>().data() + (row - rows.begin) * width, width, store_.row(stored, row, tensor.part));
  }
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
