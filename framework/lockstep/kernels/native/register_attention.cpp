// Attention, the cross entropy over a vocabulary, and products of pairs of vectors.
#include "lockstep/kernels/native/attention.h"
#include "lockstep/kernels/native/pair_products.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/kernels/native/vocabulary.h"
#include "lockstep/kernels/native/workers.h"
#include "lockstep/ops/pair_products.h"

namespace lockstep::kernels::native {
namespace {

std::optional<KernelOffer> attention(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = build_for(r.dtype(), [g = AttentionGeometry(r, r.as<AttentionOp>().options())]<class T>(T) {
    const std::int64_t count = worker_count();
    return make_kernel(
        [g, count](const Arguments& a) {
          const AttentionRun run(g, a);
          attention_forward<T>(
              g, run,
              {.x = AttentionProjections<const T>(g, a.inputs), .result = a.out<T>(0), .log_sums = a.out<float>(1)},
              count, a.scratch<float>());
        },
        attention_forward_scratch<T>(g, count));
  });
  return offer;
}

std::optional<KernelOffer> attention_gradient(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = build_for(r.dtype(), [g = AttentionGeometry(r, r.as<AttentionGradientOp>().options())]<class T>(T) {
    const std::int64_t count = worker_count();
    return make_kernel(
        [g, count](const Arguments& a) {
          const AttentionRun run(g, a);
          const auto at = static_cast<std::size_t>(g.inputs.result);
          attention_backward<T>(g, run,
                                {.x = AttentionProjections<const T>(g, a.inputs),
                                 .result = a.in<T>(at),
                                 .log_sums = a.in<float>(at + 1),
                                 .dresult = a.in<T>(at + 2),
                                 .dx = AttentionProjections<T>(g, a.outputs)},
                                count, a.scratch<float>());
        },
        attention_backward_scratch<T>(g, count));
  });
  return offer;
}

std::optional<KernelOffer> vocabulary(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  const VocabularyShape s(r, r.as<VocabularyCrossEntropyOp>().options());
  offer.build = build_for(r.inputs[0].dtype, [s]<class T>(T) {
    const std::int64_t count = worker_count();
    return make_kernel(
        [s, count](const Arguments& a) {
          vocabulary_forward<T>(s, VocabularyInputs<T, float>(s, a),
                                {.loss = a.out<float>(0),
                                 .weight_sum = a.out<float>(1),
                                 .log_sums = a.out<float>(2),
                                 .losses = a.out<float>(3),
                                 .correct = a.out<double>(4)},
                                count, a.scratch<float>());
        },
        vocabulary_forward_scratch<T>(s, count));
  });
  return offer;
}

std::optional<KernelOffer> vocabulary_gradient(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  const VocabularyShape s(r, r.as<VocabularyCrossEntropyGradientOp>().options());
  offer.build = build_for(r.inputs[0].dtype, [s]<class T>(T) {
    const std::int64_t count = worker_count();
    return make_kernel(
        [s, count](const Arguments& a) {
          const VocabularyInputs<T, float> in(s, a);
          vocabulary_backward<T>(s, in,
                                 {.log_sums = a.in<float>(in.next),
                                  .weight_sum = *a.in<float>(in.next + 1),
                                  .dloss = *a.in<float>(in.next + 2),
                                  .dx = a.out<T>(0),
                                  .dtable = a.out<float>(1),
                                  .dbias = in.bias != nullptr ? a.out<float>(2) : nullptr},
                                 count, a.scratch<float>());
        },
        vocabulary_backward_scratch<T>(s, count));
  });
  return offer;
}

std::optional<KernelOffer> pairs(const KernelRequest& r, std::span<const Layout>) {
  if (r.dtype() != DType::F32) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = [g = PairGeometry(r.inputs[0].shape)] {
    const std::int64_t count = worker_count();
    return make_kernel(
        [g, count](const Arguments& a) {
          pair_products(g, a.in<float>(0), a.out<float>(0), count, a.scratch<float>());
        },
        pair_products_scratch(g, count));
  };
  return offer;
}

std::optional<KernelOffer> pairs_gradient(const KernelRequest& r, std::span<const Layout>) {
  if (r.dtype() != DType::F32) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = [g = PairGeometry(r.inputs[1].shape)] {
    const std::int64_t count = worker_count();
    return make_kernel(
        [g, count](const Arguments& a) {
          pair_products_gradient(g, a.in<float>(0), a.in<float>(1), a.out<float>(0), count, a.scratch<float>());
        },
        pair_products_gradient_scratch(g, count));
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> attention_rows() {
  return {
      kernel_row<PairProductsOp>("pair_products", pairs),
      kernel_row<PairProductsGradientOp>("pair_products_gradient", pairs_gradient),
      kernel_row<AttentionOp>("attention", attention),
      kernel_row<AttentionGradientOp>("attention_gradient", attention_gradient),
      kernel_row<VocabularyCrossEntropyOp>("vocabulary_cross_entropy", vocabulary),
      kernel_row<VocabularyCrossEntropyGradientOp>("vocabulary_cross_entropy_gradient", vocabulary_gradient),
  };
}

}  // namespace lockstep::kernels::native
