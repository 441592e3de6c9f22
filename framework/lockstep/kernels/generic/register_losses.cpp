// Softmax, its cross entropy and counts of correct answers.
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/kernels/generic/softmax_cross_entropy.h"
#include "lockstep/ops/class_counts.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/one_hot.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::kernels::generic {
namespace {

template <class T>
std::vector<T> converted(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <class T>
const T* or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

// Targets are the second input of all these ops.
TargetSource target_source(const KernelRequest& r) {
  return {.op = std::string(r.op->name()), .path = r.path, .field = r.field(1)};
}

CrossEntropyOptions kernel_options(const KernelRequest& r, const lockstep::CrossEntropyOptions& options) {
  const Shape& logits = r.inputs[0].shape;  // or probabilities
  CrossEntropyOptions o{.samples = logits[0],
                        .classes = logits[1],
                        .label_smoothing = options.label_smoothing,
                        .source = target_source(r),
                        .ignore_index = options.ignore_index};
  for (int d = 2; d < logits.rank(); ++d) o.positions *= logits[d];
  return o;
}

// Targets are the second input; `weights` is the number of the input with the weights of positions, which may be
// missing.
template <class T>
CrossEntropyTargets<T> targets_of(const Arguments& a, bool are_classes, std::size_t weights, bool has_weights) {
  const T* of_positions = has_weights ? a.in<T>(weights) : nullptr;
  if (are_classes) return {a.in<std::int32_t>(1), nullptr, of_positions};
  return {nullptr, a.in<T>(1), of_positions};
}

std::optional<KernelOffer> cross_entropy_kernel(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<lockstep::CrossEntropyOp>();
  KernelOffer offer = plain_offer(r);
  const CrossEntropyOptions options = kernel_options(r, op.options());
  const bool classes = !is_floating(r.inputs[1].dtype), weighted = r.inputs.size() > 2;
  offer.build = [=, weights = op.options().class_weights, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=, w = converted<T>(weights)](const Arguments& a) {
        softmax_cross_entropy_forward<T>(options, a.in<T>(0), targets_of<T>(a, classes, 2, weighted), or_null(w),
                                         a.out<T>(2), a.out<T>(0), a.out<T>(1));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> cross_entropy_gradient(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<lockstep::CrossEntropyGradientOp>();
  KernelOffer offer = plain_offer(r);
  const CrossEntropyOptions options = kernel_options(r, op.options());
  const bool classes = !is_floating(r.inputs[1].dtype), weighted = r.inputs.size() > 4;
  offer.build = [=, weights = op.options().class_weights, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=, w = converted<T>(weights)](const Arguments& a) {
        softmax_cross_entropy_backward<T>(options, a.in<T>(0), targets_of<T>(a, classes, 4, weighted), or_null(w),
                                          *a.in<T>(2), *a.in<T>(3), a.out<T>(0));
      });
    });
  };
  return offer;
}

// An axis with what lies outside and inside of it.
struct AxisView {
  AxisView(const Shape& shape, int axis) {
    const int at = axis < 0 ? axis + shape.rank() : axis;
    for (int i = 0; i < at; ++i) outer *= shape[i];
    for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
    size = shape[at];
  }
  std::int64_t outer = 1, size = 1, inner = 1;
};
std::optional<KernelOffer> one_hot_kernel(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<OneHotOp>();
  KernelOffer offer = plain_offer(r);
  const Shape& labels = r.inputs[0].shape;
  const CrossEntropyOptions options{.samples = labels[0],
                                    .classes = op.classes(),
                                    .source = {.op = "one_hot", .path = r.path, .field = r.field(0)},
                                    .positions = labels.tail().elements(),
                                    .ignore_index = op.ignore_index()};
  offer.build = [options, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([options](const Arguments& a) { one_hot(options, a.in<std::int32_t>(0), a.out<T>(0)); });
    });
  };
  return offer;
}

std::optional<KernelOffer> softmax_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  const AxisView v(r.inputs[0].shape, r.as<SoftmaxOp>().axis());
  offer.build = [v, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([v](const Arguments& a) {
        if (v.inner == 1) return softmax_forward(v.outer, v.size, a.in<T>(0), a.out<T>(0));
        softmax_columns_forward(v.outer, v.size, v.inner, a.in<T>(0), a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> softmax_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 1;
  const AxisView v(r.inputs[0].shape, r.as<SoftmaxGradientOp>().axis());
  offer.build = [v, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([v](const Arguments& a) {
        const T *y = a.in<T>(0), *dy = a.in<T>(1);
        if (v.inner == 1) return softmax_backward(v.outer, v.size, y, dy, a.out<T>(0));
        softmax_columns_backward(v.outer, v.size, v.inner, y, dy, a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> class_counts_kernel(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<ClassCountsOp>();
  KernelOffer offer = plain_offer(r);
  const Shape& logits = r.inputs[0].shape;
  const bool matrix = op.matrix(), numbers = is_floating(r.inputs[1].dtype);
  CrossEntropyOptions options{.source = target_source(r), .ignore_index = op.ignore_index()};
  if (!numbers) {
    options.samples = logits[0];
    options.classes = logits[1];
    for (int d = 2; d < logits.rank(); ++d) options.positions *= logits[d];
  }
  offer.build = [=, elements = logits.elements(), dtype = r.inputs[0].dtype] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        if (numbers) return positive_counts(elements, a.in<T>(0), a.in<T>(1), matrix, a.out<double>(0));
        class_counts(options, a.in<T>(0), a.in<std::int32_t>(1), matrix, a.out<double>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> count_correct_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  const std::int64_t n = r.inputs[0].shape[0], c = r.inputs[0].shape[1], k = r.as<CountCorrectOp>().k();
  offer.build = [n, c, k, source = target_source(r), dtype = r.inputs[0].dtype] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        *a.out<double>(0) = count_correct(n, c, k, a.in<T>(0), a.in<std::int32_t>(1), source);
      });
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> loss_rows() {
  return {
      kernel_row<lockstep::CrossEntropyOp>("cross_entropy", cross_entropy_kernel),
      kernel_row<lockstep::CrossEntropyGradientOp>("cross_entropy_gradient", cross_entropy_gradient),
      kernel_row<OneHotOp>("one_hot", one_hot_kernel),
      kernel_row<SoftmaxOp>("softmax", softmax_kernel),
      kernel_row<SoftmaxGradientOp>("softmax_gradient", softmax_gradient_kernel),
      kernel_row<ClassCountsOp>("class_counts", class_counts_kernel),
      kernel_row<CountCorrectOp>("count_correct", count_correct_kernel),
  };
}

}  // namespace lockstep::kernels::generic
