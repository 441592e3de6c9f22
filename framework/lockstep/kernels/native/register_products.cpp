// Linear layers and products of matrices, f32 and f64: kernels that depend on no library of products.
#include <vector>

#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/common/stack.h"
#include "lockstep/kernels/native/matrix_product.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/kernels/native/workers.h"
#include "lockstep/ops/linear.h"

namespace lockstep::kernels::native {
namespace {

bool has_numbers(const KernelRequest& r) {
  return !r.has_bf16() && (r.dtype() == DType::F32 || r.dtype() == DType::F64);
}

// The scratch memory of one product: of the threads, then sums of parts of the depth.
template <class T>
struct ProductScratch {
  ProductScratch(const MatrixShape& s, std::int64_t threads, std::int64_t parts = 1)
      : blocks(threads * matrix_scratch<T>(s)), sums(parts > 1 ? parts * s.rows * s.columns : 0) {}
  std::size_t bytes() const { return static_cast<std::size_t>(blocks + sums) * sizeof(T); }
  std::int64_t blocks, sums;
};

std::optional<KernelOffer> linear(const KernelRequest& r) {
  const std::int64_t samples = r.outputs[0].shape[0], out = r.outputs[0].shape[1], in = r.inputs[0].shape[1];
  KernelOffer offer = plain_offer(r);
  offer.build = [s = dense(samples, out, in, false, true), relu = r.as<LinearOp>().relu(), bias = r.inputs.size() > 2,
                 dtype = r.dtype()] {
    return build_typed(dtype, [&]<class T>(T) {
      const std::int64_t count = worker_count();
      return make_kernel(
          [=](const Arguments& a) {
            multiply<T>(
                s, {.a = a.in<T>(0), .b = a.in<T>(1), .c = a.out<T>(0), .bias = input_if<T>(bias, a, 2), .relu = relu},
                count, a.scratch<T>());
          },
          ProductScratch<T>(s, count).bytes());
    });
  };
  return offer;
}

std::optional<KernelOffer> linear_data(const KernelRequest& r) {
  const std::int64_t samples = r.outputs[0].shape[0], in = r.outputs[0].shape[1], out = r.inputs[0].shape[1];
  KernelOffer offer = plain_offer(r);
  offer.build = [s = dense(samples, in, out, false, false), dtype = r.dtype()] {
    return build_typed(dtype, [&]<class T>(T) {
      const std::int64_t count = worker_count();
      return make_kernel(
          [=](const Arguments& a) {
            multiply<T>(s, {.a = a.in<T>(0), .b = a.in<T>(1), .c = a.out<T>(0)}, count, a.scratch<T>());
          },
          ProductScratch<T>(s, count).bytes());
    });
  };
  return offer;
}

std::optional<KernelOffer> linear_weights(const KernelRequest& r) {
  const std::int64_t out = r.outputs[0].shape[0], in = r.outputs[0].shape[1], samples = r.inputs[0].shape[0];
  KernelOffer offer = plain_offer(r);
  offer.build = [s = dense(out, in, samples, true, false), bias = r.outputs.size() > 1, dtype = r.dtype()] {
    return build_typed(dtype, [&]<class T>(T) {
      const std::int64_t count = worker_count();
      const ProductScratch<T> scratch(s, count, depth_parts(s.rows, s.columns, s.depth));
      return make_kernel(
          [=](const Arguments& a) {
            multiply_in_parts<T>(
                s, {.a = a.in<T>(1), .b = a.in<T>(0), .c = a.out<T>(0), .row_sums = bias ? a.out<T>(1) : nullptr},
                count, a.scratch<T>(), a.scratch<T>() + scratch.blocks);
          },
          scratch.bytes());
    });
  };
  return offer;
}

// Stacks of matrices: `at` has where the operands of each product begin.
struct Stack {
  struct Offsets {
    std::int64_t a, b;
  };
  Stack(const MatmulOp& op, const Shape& a, const Shape& b, const Shape& y)
      : shape(dense(y[y.rank() - 2], y[y.rank() - 1], a[a.rank() - (op.transpose_a() ? 2 : 1)], op.transpose_a(),
                    op.transpose_b())) {
    std::int64_t count = 1;
    for (int i = 0; i < y.rank() - 2; ++i) count *= y[i];
    for (std::int64_t p = 0; p < count; ++p) at.push_back({matrix_offset(a, y, p), matrix_offset(b, y, p)});
  }

  template <class T>
  void run(const T* a, const T* b, T* y, std::int64_t threads, T* scratch) const {
    const auto count = static_cast<std::int64_t>(at.size());
    const auto arrays = [&](std::int64_t p) {
      const Offsets& begin = at[static_cast<std::size_t>(p)];
      return MatrixArrays<T>{.a = a + begin.a, .b = b + begin.b, .c = y + p * shape.rows * shape.columns};
    };
    if (count < threads) {
      for (std::int64_t p = 0; p < count; ++p) multiply<T>(shape, arrays(p), threads, scratch);
      return;
    }
    const std::int64_t each = matrix_scratch<T>(shape), work = shape.rows * shape.columns * shape.depth / 8;
    parallel_for(threads, work * count / threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        const Range part = part_of(count, threads, thread);
        for (std::int64_t p = part.begin; p < part.end; ++p) multiply<T>(shape, arrays(p), scratch + thread * each);
      }
    });
  }

  MatrixShape shape;
  std::vector<Offsets> at;
};

std::optional<KernelOffer> matmul(const KernelRequest& r) {
  KernelOffer offer = plain_offer(r);
  offer.build = [stack = Stack(r.as<MatmulOp>(), r.inputs[0].shape, r.inputs[1].shape, r.outputs[0].shape),
                 dtype = r.dtype()] {
    return build_typed(dtype, [&]<class T>(T) {
      const std::int64_t count = worker_count();
      return make_kernel(
          [stack, count](const Arguments& a) { stack.run(a.in<T>(0), a.in<T>(1), a.out<T>(0), count, a.scratch<T>()); },
          ProductScratch<T>(stack.shape, count).bytes());
    });
  };
  return offer;
}

template <class Make>
auto placed(Make make, Place place) {
  return [make, place](const KernelRequest& r, std::span<const Layout>) -> std::optional<KernelOffer> {
    if (!has_numbers(r) || product_place(r) != place) return std::nullopt;
    return make(r);
  };
}

}  // namespace

std::vector<KernelRow> product_rows(Place place) {
  return {kernel_row<LinearOp>("linear", placed(linear, place)),
          kernel_row<LinearBackwardDataOp>("linear_backward_data", placed(linear_data, place)),
          kernel_row<LinearBackwardWeightsOp>("linear_backward_weights", placed(linear_weights, place)),
          kernel_row<MatmulOp>("matmul", placed(matmul, place))};
}

}  // namespace lockstep::kernels::native
