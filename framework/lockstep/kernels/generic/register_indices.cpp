// Ops that read indices, and their gradients.
#include "lockstep/kernels/generic/indexing.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep::kernels::generic {
namespace {

// Indices are the second input of all these ops.
IndexSource index_source(const KernelRequest& r, std::int64_t size, std::string reason) {
  return {.op = std::string(r.op->name()),
          .path = r.path,
          .field = r.field(1),
          .shape = r.inputs[1].shape.dims(),
          .size = size,
          .reason = std::move(reason)};
}

IndexSource axis_source(const KernelRequest& r, const Shape& indexed, int axis) {
  const std::int64_t size = indexed[axis];
  return index_source(r, size, formatted("axis {} has {} elements", axis, size));
}

IndexSource table_source(const KernelRequest& r, std::int64_t rows) {
  return index_source(r, rows, formatted("the table has {} rows", rows));
}

// `x` is the value with `size` elements along the axis, of which `count` are chosen.
RowGeometry row_geometry(const Shape& x, int axis, std::int64_t count, std::optional<std::int64_t> masked = {}) {
  return {.outer = axes::outer(x, axis),
          .size = x[axis],
          .inner = axes::inner(x, axis),
          .count = count,
          .masked = masked.value_or(-1)};
}

KernelOffer take_offer(const KernelRequest& r, RowGeometry geometry, IndexSource source) {
  KernelOffer offer = plain_offer(r);
  offer.build = [geometry, source = std::move(source), bytes = size_of(r.dtype())] {
    return make_kernel([geometry, source, bytes](const Arguments& a) {
      check_indices(source, a.in<std::int32_t>(1));
      take_rows(geometry, bytes, a.inputs[0], a.in<std::int32_t>(1), a.outputs[0]);
    });
  };
  return offer;
}

KernelOffer add_offer(const KernelRequest& r, RowGeometry geometry, IndexSource source) {
  KernelOffer offer = plain_offer(r);
  offer.build = [geometry, source = std::move(source), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [geometry, source](const Arguments& a) {
            check_indices(source, a.in<std::int32_t>(1));
            add_rows(geometry, a.in<T>(0), a.in<std::int32_t>(1), a.scratch<std::int64_t>(), a.out<T>(0));
          },
          static_cast<std::size_t>(add_rows_scratch(geometry)) * sizeof(std::int64_t));
    });
  };
  return offer;
}

std::optional<KernelOffer> index_select_kernel(const KernelRequest& r, std::span<const Layout>) {
  const Shape& x = r.inputs[0].shape;
  const int axis = r.as<IndexSelectOp>().axis();
  return take_offer(r, row_geometry(x, axis, r.inputs[1].shape.elements()), axis_source(r, x, axis));
}

std::optional<KernelOffer> index_add_kernel(const KernelRequest& r, std::span<const Layout>) {
  const Shape& x = r.outputs[0].shape;
  const int axis = r.as<IndexAddOp>().axis();
  return add_offer(r, row_geometry(x, axis, r.inputs[1].shape.elements()), axis_source(r, x, axis));
}

std::optional<KernelOffer> embedding_kernel(const KernelRequest& r, std::span<const Layout>) {
  const Shape& table = r.inputs[0].shape;
  const auto& op = r.as<EmbeddingOp>();
  const std::optional<std::int64_t> masked = op.masks() ? op.padding() : std::nullopt;
  return take_offer(r, row_geometry(table, 0, r.inputs[1].shape.elements(), masked), table_source(r, table[0]));
}

std::optional<KernelOffer> embedding_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  const Shape& table = r.outputs[0].shape;
  const auto padding = r.as<EmbeddingGradientOp>().padding();
  return add_offer(r, row_geometry(table, 0, r.inputs[1].shape.elements(), padding), table_source(r, table[0]));
}

std::optional<KernelOffer> gather_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  const int axis = r.as<GatherOp>().axis();
  const ElementGather elements(r.inputs[0].shape.dims(), r.inputs[1].shape.dims(), axis);
  offer.build = [elements, source = axis_source(r, r.inputs[0].shape, axis), bytes = size_of(r.dtype())] {
    return make_kernel([elements, source, bytes](const Arguments& a) {
      check_indices(source, a.in<std::int32_t>(1));
      elements.gather(bytes, a.inputs[0], a.in<std::int32_t>(1), a.outputs[0]);
    });
  };
  return offer;
}

std::optional<KernelOffer> scatter_add_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  const Shape& x = r.outputs[0].shape;
  const int axis = r.as<ScatterAddOp>().axis();
  const ElementGather elements(x.dims(), r.inputs[1].shape.dims(), axis);
  offer.build = [elements, source = axis_source(r, x, axis), n = x.elements(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      const std::size_t scratch = sizeof(T) == sizeof(double) ? 0 : static_cast<std::size_t>(n) * sizeof(double);
      return make_kernel(
          [elements, source](const Arguments& a) {
            check_indices(source, a.in<std::int32_t>(1));
            double* const totals = sizeof(T) == sizeof(double) ? a.out<double>(0) : a.scratch<double>();
            elements.scatter_add(a.in<T>(0), a.in<std::int32_t>(1), totals, a.out<T>(0));
          },
          scratch);
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> index_rows() {
  return {
      kernel_row<IndexSelectOp>("index_select", index_select_kernel),
      kernel_row<EmbeddingOp>("embedding", embedding_kernel),
      kernel_row<GatherOp>("gather", gather_kernel),
  };
}

std::vector<KernelRow> index_sum_rows() {
  return {
      kernel_row<IndexAddOp>("index_add", index_add_kernel),
      kernel_row<EmbeddingGradientOp>("embedding_gradient", embedding_gradient_kernel),
      kernel_row<ScatterAddOp>("scatter_add", scatter_add_kernel),
  };
}

}  // namespace lockstep::kernels::generic
