// Rows of sparse tables, and bags of rows.
#include <algorithm>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/bag.h"
#include "lockstep/kernels/generic/indexing.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/bag.h"
#include "lockstep/ops/table.h"

namespace lockstep::kernels::generic {
namespace {

// Integers of a node's input, i32 or i64, as i64: the memory of the input, or a copy in scratch memory.
struct Integers {
  std::size_t input;
  DType dtype;
  std::int64_t count;
  Integers(const KernelRequest& r, std::size_t i)
      : input(i), dtype(r.inputs[i].dtype), count(r.inputs[i].shape.elements()) {}
  std::size_t scratch_bytes() const {
    return dtype == DType::I64 ? 0 : static_cast<std::size_t>(count) * sizeof(std::int64_t);
  }
  std::span<const std::int64_t> read(const Arguments& a) const {
    const auto n = static_cast<std::size_t>(count);
    if (dtype == DType::I64) return {a.in<std::int64_t>(input), n};
    std::copy_n(a.in<std::int32_t>(input), n, a.scratch<std::int64_t>());
    return {a.scratch<std::int64_t>(), n};
  }
};

IndexSource source_of(const KernelRequest& r, std::size_t input, std::int64_t size, std::string reason) {
  return {.op = std::string(r.op->name()),
          .path = r.path,
          .field = r.field(input),
          .shape = r.inputs[input].shape.dims(),
          .size = size,
          .reason = std::move(reason)};
}

std::optional<KernelOffer> table_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [dtype = r.dtype()] {
    return build_typed(dtype,
                       [](auto tag) { return make_kernel([](const Arguments& a) { *a.out<decltype(tag)>(0) = 0; }); });
  };
  return offer;
}

void check_dtype(std::string_view op, const TableAccess& store, DType dtype) {
  check(store.dtype() == dtype, op, "rows are {}, the table's store has {}", name_of(dtype), name_of(store.dtype()));
}

std::optional<KernelOffer> lookup_kernel(const KernelRequest& r, std::span<const Layout>) {
  const Table& table = r.as<TableLookupOp>().table();
  KernelOffer offer = plain_offer(r);
  offer.build = [&table, ids = Integers(r, 1), dtype = r.dtype(),
                 source = source_of(r, 1, table.rows, formatted("the table has {} rows", table.rows))] {
    return make_kernel(
        [&table, ids, dtype, source](const Arguments& a) {
          const std::shared_ptr<TableAccess> store = table.bound();
          check_dtype("table_lookup", *store, dtype);
          const std::span<const std::int64_t> rows = ids.read(a);
          check_indices(source, rows.data());
          store->lookup(table, rows, a.outputs[0]);
        },
        ids.scratch_bytes());
  };
  return offer;
}

std::optional<KernelOffer> gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  const Table& table = r.as<TableGradientOp>().table();
  KernelOffer offer = plain_offer(r);
  offer.build = [&table, ids = Integers(r, 1), dtype = r.dtype()] {
    return make_kernel(
        [&table, ids, dtype](const Arguments& a) {
          const std::shared_ptr<TableAccess> store = table.bound();
          check_dtype("table_gradient", *store, dtype);
          store->add_gradient(table, ids.read(a), a.inputs[0]);
          dtype == DType::F64 ? *a.out<double>(0) = 0 : *a.out<float>(0) = 0;
        },
        ids.scratch_bytes());
  };
  return offer;
}

// `x` is the value (N, K, E); `use` is the input with ids or counts.
BagGeometry bag_geometry(const Shape& x, BagMode mode, std::optional<std::int64_t> padding) {
  return {.bags = x[0], .capacity = x[1], .width = x[2], .mode = mode, .padding = padding};
}

IndexSource count_source(const KernelRequest& r, std::size_t input, std::int64_t capacity) {
  return source_of(r, input, capacity + 1, formatted("a bag has {} entries", capacity));
}

// A kernel of the op O whose input number `x` has the values (N, K, E), in front of the ids or counts. `run` gets the
// geometry, the arguments, the ids or counts, and a number of the type of the values.
template <class O, class Run>
KernelOffer bag_offer(const KernelRequest& r, std::size_t x, const Run& run) {
  const auto& op = r.as<O>();
  KernelOffer offer = plain_offer(r);
  const Shape& values = r.inputs[x].shape;
  offer.build = [g = bag_geometry(values, op.mode(), op.padding()), use = Integers(r, x + 1), dtype = r.dtype(),
                 source = count_source(r, x + 1, values[1]), run] {
    return build_typed(dtype, [&](auto tag) {
      return make_kernel(
          [g, use, source, run, tag](const Arguments& a) {
            const std::span<const std::int64_t> used = use.read(a);
            if (!g.padding) check_indices(source, used.data());
            run(g, a, used.data(), tag);
          },
          use.scratch_bytes());
    });
  };
  return offer;
}

std::optional<KernelOffer> bag_kernel(const KernelRequest& r, std::span<const Layout>) {
  return bag_offer<BagOp>(r, 0, [](const BagGeometry& g, const Arguments& a, const std::int64_t* used, auto tag) {
    using T = decltype(tag);
    join_bags(g, a.in<T>(0), used, a.out<T>(0));
  });
}

std::optional<KernelOffer> bag_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  return bag_offer<BagGradientOp>(r, 1,
                                  [](const BagGeometry& g, const Arguments& a, const std::int64_t* used, auto tag) {
                                    using T = decltype(tag);
                                    spread_bags(g, a.in<T>(0), a.in<T>(1), used, a.out<T>(0));
                                  });
}

}  // namespace

std::vector<KernelRow> table_rows() {
  return {
      kernel_row<TableOp>("table", table_kernel),
      kernel_row<TableLookupOp>("table_lookup", lookup_kernel),
      kernel_row<TableGradientOp>("table_gradient", gradient_kernel),
      kernel_row<BagOp>("bag", bag_kernel),
      kernel_row<BagOp>("bag_max", bag_kernel),
      kernel_row<BagGradientOp>("bag_gradient", bag_gradient_kernel),
      kernel_row<BagGradientOp>("bag_max_gradient", bag_gradient_kernel),
  };
}

}  // namespace lockstep::kernels::generic
