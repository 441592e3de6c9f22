#include "lockstep/kernels/common/vocabulary.h"

#include <algorithm>

namespace lockstep::kernels {

VocabularyShape::VocabularyShape(const KernelRequest& r, const VocabularyAttributes& a)
    : positions(r.inputs[0].shape[0]),
      features(r.inputs[0].shape[1]),
      vocabulary(r.inputs[1].shape[0]),
      attributes(a),
      source{.op = std::string(r.op->name()), .path = r.path, .field = r.field(2)} {}

void check_targets(const VocabularyShape& s, const std::int32_t* targets) {
  const std::int64_t per_sample = std::max<std::int64_t>(1, s.attributes.per_sample);
  check_targets({s.positions / per_sample, per_sample}, s.vocabulary, targets, s.attributes.options.ignore_index,
                s.source);
}

template <class Sum>
void vocabulary_mean(const VocabularyShape& s, const std::int32_t* targets, const Sum* weights, const Sum* losses,
                     Sum* loss, Sum* weight_sum) {
  double total = 0, weight = 0;
  for (std::int64_t m = 0; m < s.positions; ++m) {
    if (!s.counts(targets[m])) continue;
    const double own = weights ? static_cast<double>(weights[m]) : 1.0;
    if (own == 0) continue;  // its loss may be NaN
    total += own * static_cast<double>(losses[m]);
    weight += own;
  }
  *weight_sum = static_cast<Sum>(weight);
  *loss = weight == 0 ? Sum(0) : static_cast<Sum>(total / weight);
}

template void vocabulary_mean<float>(const VocabularyShape&, const std::int32_t*, const float*, const float*, float*,
                                     float*);
template void vocabulary_mean<double>(const VocabularyShape&, const std::int32_t*, const double*, const double*,
                                      double*, double*);

}  // namespace lockstep::kernels
