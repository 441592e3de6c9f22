// Normalisation of fields: y = (g(x) - shift) / scale per channel, where g(x) is x or log(x + offset). The numbers are
// measured once over the training set, or given; they are text in a checkpoint, and undone in predictions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/data/transforms.h"

namespace lockstep::comm {
class Communicator;
}

namespace lockstep::data {

enum class Scaling : std::uint8_t {
  None,     // shift 0, scale 1
  MeanStd,  // mean and standard deviation (of the population): mean 0, variance 1
  MinMax    // minimum, and maximum minus minimum: values in [0, 1]
};

// The wanted normalisation of one field.
struct NormalisationOptions {
  std::string field{};
  Scaling scaling = Scaling::MeanStd;
  std::optional<double> log_offset{};  // g(x) = log(x + offset); x + offset must be above 0
  std::int64_t channel_axis = -1;      // axis of a sample whose elements have numbers of their own; -1: one for all
  // Given in place of measured numbers (of g(x)): one value, or one per channel. With MeanStd, both or none.
  std::vector<double> mean{}, stddev{};
};

// The normalisation of one field.
struct FieldNormalisation {
  std::string field{};
  std::optional<double> log_offset{};
  std::int64_t channel_axis = -1;
  std::vector<double> shift{}, scale{};  // one value, or one per channel; the scale is above 0
  bool operator==(const FieldNormalisation&) const = default;
};

// A value; any thread may call the const functions.
class Normalisation {
 public:
  Normalisation() = default;
  // Throws Error for a field that is there twice, numbers that do not fit each other, and a scale that is not above 0.
  explicit Normalisation(std::vector<FieldNormalisation> fields);

  const std::vector<FieldNormalisation>& fields() const { return fields_; }
  // The entry of a field; null: the field stays as it is.
  const FieldNormalisation* find(std::string_view field) const;

  // Normalises a batch of one field, F32 or F64 (samples, field's dimensions ...), or undoes that, computing in f64. A
  // tensor of a field without an entry is returned as it is. Throws Error for another type, a number of channels that
  // does not fit, and a logarithm of a number that is not above 0.
  Tensor apply(std::string_view field, Tensor values) const;
  Tensor restore(std::string_view field, Tensor values) const;

  // JSON; numbers read back are the same bits. parse() throws Error with the cause for another text.
  std::string text() const;
  static Normalisation parse(std::string_view text);

  bool operator==(const Normalisation&) const = default;

 private:
  std::vector<FieldNormalisation> fields_;
};

// Measures the numbers of the options over all samples of `dataset`, which all ranks have: each reads a part.
// Collective. The result is the same, bit for bit, on all ranks and at any number of ranks and threads: samples are cut
// into at most 1024 blocks by their number alone, and the blocks' sums, in f64, are combined in order (Chan, Golub and
// LeVeque (1979), "Updating formulae and a pairwise algorithm for computing sample variances"). A channel whose values
// are all equal gets scale 1. Throws AgreedError on all ranks for options that do not fit the fields, and a value that
// is not finite, with field, place and element.
Normalisation measure_normalisation(const Dataset& dataset, const std::vector<NormalisationOptions>& options,
                                    const comm::Communicator& ranks, int threads = 1);
// The same on this process alone, without MPI. Throws Error.
Normalisation measure_normalisation(const Dataset& dataset, const std::vector<NormalisationOptions>& options,
                                    int threads = 1);

// Normalises the named fields of each sample; integers become `integers_as` (F32 or F64). Copies other fields.
class Normalise : public Transform {
 public:
  explicit Normalise(Normalisation normalisation, DType integers_as = DType::F32);

  // Throws Error for a field that is not there, and channels that do not fit its shape.
  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  Normalisation normalisation_;
  DType integers_as_;
};

}  // namespace lockstep::data
