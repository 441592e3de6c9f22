#include "lockstep/data/class_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/convert_array.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kTargetSite = "classes", kFlagSite = "flags";
constexpr std::int64_t kMostClasses = 1 << 16;

// The values of a field as f64, which holds every class.
std::vector<double> values_of(const Field& field, const std::byte* in) {
  std::vector<double> values(static_cast<std::size_t>(field.shape.elements()));
  convert_array(field.dtype, in, DType::F64, reinterpret_cast<std::byte*>(values.data()), field.shape.elements());
  return values;
}

bool is_class(double value, std::int64_t classes) {
  return value == std::floor(value) && value >= 0 && value < static_cast<double>(classes);
}

std::string expectation(std::int64_t classes, std::int32_t ignore_index) {
  return formatted("expected a class from 0 to {}, or the ignored index {} (--ignore-index)", classes - 1,
                   ignore_index);
}

// Reads those of the samples [part.begin, part.end) for which reads(sample) is true, and calls one(value, element,
// sample) for all values of a field.
template <class Reads, class One>
void each_value(const Dataset& dataset, const std::string& name, Range part, Reads reads, One one) {
  const std::vector<Field>& fields = dataset.fields();
  const std::size_t at = find_field(kTargetSite, fields, name);
  SampleBuffers sample(fields);
  for (std::int64_t index = part.begin; index < part.end; ++index) {
    if (!reads(index)) continue;
    dataset.read(index, sample.out);
    const std::vector<double> values = values_of(fields[at], sample.out[at]);
    for (std::size_t i = 0; i < values.size(); ++i) one(values[i], i, index);
  }
}

// The classes of samples [part.begin, part.end), counted.
std::vector<std::int64_t> count_part(const Dataset& dataset, const std::string& name, std::int64_t most,
                                     std::int32_t ignore_index, Range part) {
  std::vector<std::int64_t> counts;
  const auto add = [&](double value, std::int64_t index) {
    if (value == ignore_index) return;
    if (!is_class(value, most))  // the message costs time
      fail(kTargetSite, "{}: '{}' is {}, {}", dataset.locate(index), name, value, expectation(most, ignore_index));
    const auto c = static_cast<std::size_t>(value);
    if (c >= counts.size()) counts.resize(c + 1);
    ++counts[c];
  };
  const auto reads = [&](std::int64_t index) {
    const std::int32_t known = dataset.label(index);
    if (known >= 0) add(known, index);
    return known < 0;
  };
  each_value(dataset, name, part, reads, [&](double value, std::size_t, std::int64_t index) { add(value, index); });
  return counts;
}

}  // namespace

ClassTarget::ClassTarget(ClassTargetOptions options, int spatial_axes)
    : options_(std::move(options)), spatial_axes_(spatial_axes) {
  check(options_.classes >= 1, kTargetSite, "'{}' has {} classes, expected at least 1", options_.field,
        options_.classes);
}

std::vector<Field> ClassTarget::fields(const std::vector<Field>& in) const {
  std::vector<Field> out = in;
  Field& field = out[find_field(kTargetSite, in, options_.field)];
  const bool channel = field.shape.rank() == spatial_axes_ + 1 || field.shape.rank() == 1;
  if (channel && field.shape[0] == 1) field.shape = field.shape.tail();
  check(field.shape.rank() == 0 || field.shape.rank() == spatial_axes_, kTargetSite,
        "'{}' has samples {}, expected one class per sample, or one per position of {} spatial dimensions",
        options_.field, in[find_field(kTargetSite, in, options_.field)].shape.str(), spatial_axes_);
  field.name = "target";
  field.dtype = DType::I32;
  return out;
}

void ClassTarget::apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                        std::span<std::byte* const> out) const {
  const std::size_t at = find_field(kTargetSite, shape, options_.field);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != at && shape[i].bytes() > 0) std::memcpy(out[i], in[i], shape[i].bytes());
  }
  const std::vector<double> values = values_of(shape[at], in[at]);
  auto* to = reinterpret_cast<std::int32_t*>(out[at]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!is_class(value, options_.classes) && value != options_.ignore_index)  // the message costs time
      fail(kTargetSite, "'{}': element {} of sample {} is {}, {}", options_.field, i, key.index, value,
           expectation(options_.classes, options_.ignore_index));
    to[i] = static_cast<std::int32_t>(value);
  }
}

std::vector<std::int64_t> count_classes(const Dataset& dataset, const std::string& field, std::int64_t classes,
                                        std::int32_t ignore_index, const comm::Communicator* comm) {
  const std::int64_t most = classes > 0 ? classes : kMostClasses, size = dataset.size();
  std::vector<std::int64_t> counts;
  if (comm == nullptr) {
    counts = count_part(dataset, field, most, ignore_index, {0, size});
  } else {
    const Range part = part_of(size, comm->size(), comm->rank());
    counts = comm::collectively(*comm, [&] { return count_part(dataset, field, most, ignore_index, part); });
    counts.resize(static_cast<std::size_t>(comm->allreduce(std::ssize(counts), comm::ReduceOp::Max)));
    comm->allreduce(comm::Buffer(counts), comm::ReduceOp::Sum);
  }
  counts.resize(std::max(counts.size(), static_cast<std::size_t>(classes)));
  const auto require_class = [&] {
    check(!counts.empty(), kTargetSite, "'{}' has no class in {} samples, expected at least one", field, size);
  };
  comm::collectively(comm, require_class);
  return counts;
}

void check_flags(const Dataset& dataset, const std::string& field, const comm::Communicator* comm) {
  const auto check_part = [&](Range part) {
    const auto all = [](std::int64_t) { return true; };
    each_value(dataset, field, part, all, [&](double value, std::size_t element, std::int64_t index) {
      if (!(value >= 0 && value <= 1))  // the message costs time
        fail(kFlagSite,
             "{}: '{}' is {} at element {}, expected 0 or 1, or a probability between them, for a --loss of flags; for "
             "integers that are classes, --loss cross-entropy",
             dataset.locate(index), field, value, element);
    });
  };
  if (comm == nullptr) return check_part({0, dataset.size()});
  comm::collectively(*comm, [&] { check_part(part_of(dataset.size(), comm->size(), comm->rank())); });
}

}  // namespace lockstep::data
