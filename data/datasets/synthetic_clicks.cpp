#include "data/datasets/synthetic_clicks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/core/random.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSyntheticClicksSite = "clicks";

double unit(RandomStream& random) {  // [0, 1) with 53 bits
  const std::uint64_t high = random.next() >> 5, low = random.next() >> 6;
  return static_cast<double>(high * (1 << 26) + low) * 0x1p-53;
}

void check_options(const SyntheticClicksOptions& o) {
  check(o.samples >= 1 && o.samples <= std::int64_t{1} << 40, kSyntheticClicksSite, "{} samples, expected 1 to 2^40",
        o.samples);
  check(o.fields >= 1 && o.fields <= 1024 && o.dense >= 0 && o.dense <= 4096, kSyntheticClicksSite,
        "{} fields of ids and {} dense numbers, expected 1 to 1024 and 0 to 4096", o.fields, o.dense);
  check(o.ids >= 2 && o.ids <= std::int64_t{1} << 28, kSyntheticClicksSite, "{} ids of a field, expected 2 to 2^28",
        o.ids);
  check(o.latent >= 0 && o.latent <= 256, kSyntheticClicksSite, "{} latent numbers of an id, expected 0 to 256",
        o.latent);
  check(o.exponent >= 0 && o.exponent <= 10, kSyntheticClicksSite,
        "exponent {} of the ids' frequencies, expected 0 to 10", o.exponent);
  check(std::isfinite(o.bias) && o.linear >= 0 && o.linear <= 100 && o.pairs >= 0 && o.pairs <= 100,
        kSyntheticClicksSite, "bias {} and deviations {} and {} of the score, expected a finite bias and 0 to 100",
        o.bias, o.linear, o.pairs);
}

}  // namespace

struct SyntheticClicks::Sample {
  std::vector<double> dense{};
  std::vector<std::int64_t> ranks{};
  std::vector<double> sum{};  // over fields, of v
  double linear = 0, squares = 0, label_draw = 0;
};

SyntheticClicks::SyntheticClicks(SyntheticClicksOptions options) : options_(options) {
  const SyntheticClicksOptions& o = options_;
  check_options(o);
  if (o.dense > 0) fields_.push_back({"dense", Shape{o.dense}, DType::F32});
  fields_.push_back({"ids", Shape{o.fields}, DType::I64});
  fields_.push_back({"label", Shape{}, DType::F32});
  double sum = 0;
  cumulative_.reserve(static_cast<std::size_t>(o.ids));
  for (std::int64_t r = 0; r < o.ids; ++r) {
    sum += math::pow(static_cast<double>(r + 1), -o.exponent);
    cumulative_.push_back(sum);
  }
  for (double& value : cumulative_) value /= sum;
  RandomStream random(mix(o.seed, hash_name("clicks slopes")), 0);
  for (std::int64_t d = 0; d < o.dense; ++d) slopes_.push_back(o.linear * random.normal());
  // The sum over fields (fields - 1) / 2 pairs of `latent` products of normal numbers has this deviation.
  const double products = static_cast<double>(o.fields * (o.fields - 1) * o.latent) / 2;
  pair_scale_ = products > 0 ? std::sqrt(o.pairs / std::sqrt(products)) : 0;
}

std::string SyntheticClicks::describe() const {
  return formatted("clicks: {} samples of {} dense numbers and {} fields of {} ids", size(), options_.dense,
                   options_.fields, options_.ids);
}

std::int64_t SyntheticClicks::rank_of(double uniform) const {
  const auto place = std::ranges::upper_bound(cumulative_, uniform);
  return std::min<std::int64_t>(place - cumulative_.begin(), options_.ids - 1);
}

// Adds w and v of an id.
void SyntheticClicks::add_id(std::int64_t field, std::int64_t rank, Sample& sample) const {
  RandomStream random(mix(mix(options_.seed, hash_name("clicks ids")), static_cast<std::uint64_t>(field)),
                      static_cast<std::uint64_t>(rank));
  sample.linear += options_.linear * random.normal();
  for (double& sum : sample.sum) {
    const double v = pair_scale_ * random.normal();
    sum += v;
    sample.squares += v * v;
  }
}

SyntheticClicks::Sample SyntheticClicks::draw(std::int64_t index) const {
  const SyntheticClicksOptions& o = options_;
  const std::string_view split = o.split == data::Split::Train ? "clicks training" : "clicks evaluation";
  RandomStream random(mix(o.seed, hash_name(split)), static_cast<std::uint64_t>(index));
  Sample sample;
  sample.sum.resize(static_cast<std::size_t>(o.latent));
  sample.label_draw = unit(random);
  for (std::int64_t f = 0; f < o.fields; ++f) sample.ranks.push_back(rank_of(unit(random)));
  for (std::int64_t d = 0; d < o.dense; ++d)
    sample.dense.push_back(static_cast<double>(static_cast<float>(random.normal())));
  for (std::int64_t f = 0; f < o.fields; ++f) add_id(f, sample.ranks[static_cast<std::size_t>(f)], sample);
  return sample;
}

double SyntheticClicks::score(std::int64_t index) const {
  check_index(index);
  return score_of(draw(index));
}

double SyntheticClicks::score_of(const Sample& sample) const {
  double score = options_.bias + sample.linear, squares = 0;
  for (std::size_t d = 0; d < slopes_.size(); ++d) score += slopes_[d] * sample.dense[d];
  for (const double sum : sample.sum) squares += sum * sum;
  return score + (squares - sample.squares) / 2;  // sum over pairs = ((sum of v)^2 - sum of v^2) / 2
}

void SyntheticClicks::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const Sample sample = draw(index);
  const double probability = math::sigmoid(score_of(sample));
  std::size_t field = 0;
  if (options_.dense > 0) {
    auto* const dense = reinterpret_cast<float*>(out[field++]);
    std::ranges::transform(sample.dense, dense, [](double x) { return static_cast<float>(x); });
  }
  auto* const ids = reinterpret_cast<std::int64_t*>(out[field++]);
  for (std::size_t f = 0; f < sample.ranks.size(); ++f) {
    const std::int64_t rank = sample.ranks[f];
    const std::uint64_t hash = mix(mix(options_.seed, f), static_cast<std::uint64_t>(rank));
    ids[f] = options_.wide ? static_cast<std::int64_t>(hash >> 1) : rank;
  }
  const float label = sample.label_draw < probability ? 1.0F : 0.0F;
  std::memcpy(out[field], &label, sizeof label);
}

double SyntheticClicks::best_auc() const {
  std::vector<std::pair<double, bool>> pairs;
  pairs.reserve(static_cast<std::size_t>(size()));
  for (std::int64_t i = 0; i < size(); ++i) {
    const Sample sample = draw(i);
    const double score = score_of(sample);
    pairs.emplace_back(score, sample.label_draw < math::sigmoid(score));
  }
  std::ranges::sort(pairs);
  double positives = 0, negatives = 0, twice = 0;
  for (std::size_t i = 0; i < pairs.size();) {
    double here[2] = {};
    for (const double score = pairs[i].first; i < pairs.size() && pairs[i].first == score; ++i)
      ++here[pairs[i].second ? 1 : 0];
    twice += here[1] * (2 * negatives + here[0]);
    negatives += here[0];
    positives += here[1];
  }
  return twice / (2 * positives * negatives);  // not a number without both kinds
}

}  // namespace lockstep::datasets
