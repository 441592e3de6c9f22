// Attention, rotary positions, caches, and the cross entropy over a vocabulary.
#include <cstring>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/attention.h"
#include "lockstep/kernels/generic/indexing.h"
#include "lockstep/kernels/generic/rotary.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/kernels/generic/vocabulary_cross_entropy.h"
#include "lockstep/ops/write_rows.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> attention_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [g = AttentionGeometry(r, r.as<AttentionOp>().options()), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([g](const Arguments& a) {
        const AttentionRun run(g, a);
        attention_forward<T>(g, run, AttentionProjections<const T>(g, a.inputs), a.out<T>(0), a.out<T>(1));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> attention_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [g = AttentionGeometry(r, r.as<AttentionGradientOp>().options()), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([g](const Arguments& a) {
        const AttentionRun run(g, a);
        const auto at = static_cast<std::size_t>(g.inputs.result);
        attention_backward<T>(g, run,
                              {.x = AttentionProjections<const T>(g, a.inputs),
                               .result = a.in<T>(at),
                               .log_sums = a.in<T>(at + 1),
                               .dresult = a.in<T>(at + 2),
                               .dx = AttentionProjections<T>(g, a.outputs)});
      });
    });
  };
  return offer;
}

template <class T, class Angle>
std::unique_ptr<Kernel> build_rotary(const RotaryShape& s) {
  std::vector<Angle> angles(static_cast<std::size_t>(s.steps * s.op.width));
  for (std::int64_t t = 0; t < s.steps; ++t) rotary_angles(s, t, angles.data() + t * s.op.width);
  return make_kernel([s, angles = std::move(angles)](const Arguments& a) {
    rotate<T, Angle>(s, angles.data(), false, a.in<T>(0), a.out<T>(0));
  });
}

// The angles of each sample's positions are computed in each run.
template <class T, class Angle>
std::unique_ptr<Kernel> build_rotary_at(const RotaryShape& s, const IndexSource& source) {
  const std::int64_t width = s.op.width;
  const auto run = [s, source, width](const Arguments& a) {
    const auto* const offsets = a.in<std::int32_t>(1);
    check_indices(source, offsets);
    parallel_for(s.samples * s.steps, 32 * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        rotary_angles(s, offsets[i / s.steps] + i % s.steps, a.scratch<Angle>() + i * width);
    });
    rotate<T, Angle>(s, a.scratch<Angle>(), true, a.in<T>(0), a.out<T>(0));
  };
  return make_kernel(run, static_cast<std::size_t>(s.samples * s.steps * width) * sizeof(Angle));
}

std::optional<KernelOffer> rotary_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  const Shape& x = r.inputs[0].shape;
  const RotaryShape s{x[0], x[1], x[2], x[3], r.as<RotaryOp>().options()};
  const IndexSource source{.op = "rotary",
                           .path = r.path,
                           .field = r.field(1),
                           .shape = {x[0]},
                           .size = std::int64_t{1} << 31,
                           .reason = "it is a position"};
  offer.build = [s, source, given = r.inputs.size() > 1, dtype = r.dtype()] {
    if (dtype == DType::BF16)
      return given ? build_rotary_at<BFloat16, float>(s, source) : build_rotary<BFloat16, float>(s);
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return given ? build_rotary_at<T, T>(s, source) : build_rotary<T, T>(s);
    });
  };
  return offer;
}

std::optional<KernelOffer> write_rows_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  const Shape &x = r.inputs[0].shape, &rows = r.inputs[1].shape;
  const std::int64_t samples = x[0], room = x[1], count = rows[1];
  const std::size_t row = static_cast<std::size_t>(x.tail().tail().elements()) * size_of(r.dtype());
  const IndexSource source{.op = "write_rows",
                           .path = r.path,
                           .field = r.field(2),
                           .shape = {samples},
                           .size = room - count + 1,
                           .reason = formatted("{} rows are written to {} positions", count, room)};
  offer.build = [=] {
    return make_kernel([=](const Arguments& a) {
      const auto* const offsets = a.in<std::int32_t>(2);
      check_indices(source, offsets);
      const std::size_t whole = static_cast<std::size_t>(room) * row, part = static_cast<std::size_t>(count) * row;
      if (a.outputs[0] != a.inputs[0])
        std::memcpy(a.outputs[0], a.inputs[0], static_cast<std::size_t>(samples) * whole);
      for (std::int64_t n = 0; n < samples; ++n) {
        std::memcpy(
            a.out<std::byte>(0) + static_cast<std::size_t>(n) * whole + static_cast<std::size_t>(offsets[n]) * row,
            a.in<std::byte>(1) + static_cast<std::size_t>(n) * part, part);
      }
    });
  };
  return offer;
}

std::optional<KernelOffer> vocabulary_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [s = VocabularyShape(r, r.as<VocabularyCrossEntropyOp>().options()), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([s](const Arguments& a) {
        vocabulary_forward<T>(s, VocabularyInputs<T, T>(s, a),
                              {.loss = a.out<T>(0),
                               .weight_sum = a.out<T>(1),
                               .log_sums = a.out<T>(2),
                               .losses = a.out<T>(3),
                               .correct = a.out<double>(4)});
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> vocabulary_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [s = VocabularyShape(r, r.as<VocabularyCrossEntropyGradientOp>().options()), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([s](const Arguments& a) {
        const VocabularyInputs<T, T> in(s, a);
        vocabulary_backward<T>(s, in,
                               {.log_sums = a.in<T>(in.next),
                                .weight_sum = *a.in<T>(in.next + 1),
                                .dloss = *a.in<T>(in.next + 2),
                                .dx = a.out<T>(0),
                                .dtable = a.out<T>(1),
                                .dbias = in.bias ? a.out<T>(2) : nullptr});
      });
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> attention_rows() {
  return {
      kernel_row<AttentionOp>("attention", attention_kernel),
      kernel_row<AttentionGradientOp>("attention_gradient", attention_gradient_kernel),
      kernel_row<RotaryOp>("rotary", rotary_kernel),
      kernel_row<VocabularyCrossEntropyOp>("vocabulary_cross_entropy", vocabulary_kernel),
      kernel_row<VocabularyCrossEntropyGradientOp>("vocabulary_cross_entropy_gradient", vocabulary_gradient_kernel),
  };
}

std::vector<KernelRow> cache_rows() { return {kernel_row<WriteRowsOp>("write_rows", write_rows_kernel)}; }

}  // namespace lockstep::kernels::generic
