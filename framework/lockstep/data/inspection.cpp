#include "lockstep/data/inspection.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/data/convert_array.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::data {
namespace {

// Adds one sample's values. `any`: whether the report has a finite value already.
void add_values(FieldReport& report, bool& any, std::int64_t sample, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) {
      ++(std::isnan(value) ? report.nan : report.infinite);
      if (report.first_sample < 0) {
        report.first_sample = sample;
        report.first_element = static_cast<std::int64_t>(i);
      }
      continue;
    }
    report.least = any ? std::min(report.least, value) : value;
    report.most = any ? std::max(report.most, value) : value;
    any = true;
  }
}

}  // namespace

std::string FieldReport::str() const {
  std::string text =
      formatted("{} {} {}: {:.6g} to {:.6g}", field.name, field.shape.str(), name_of(field.dtype), least, most);
  if (!finite())
    text +=
        formatted("; {} NaN, {} infinite, the first at element {} of {}", nan, infinite, first_element, first_place);
  return text;
}

std::vector<FieldReport> inspect(const Dataset& dataset, Range samples) {
  check(samples.begin >= 0 && samples.begin <= samples.end && samples.end <= dataset.size(), "inspection",
        "samples [{}, {}), expected a part of [0, {})", samples.begin, samples.end, dataset.size());
  const std::vector<Field>& fields = dataset.fields();
  std::vector<FieldReport> reports;
  SampleBuffers sample(fields);
  std::vector<bool> any(fields.size());
  for (const Field& field : fields) reports.push_back({.field = field});
  std::vector<double> values;
  for (std::int64_t index = samples.begin; index < samples.end; ++index) {
    dataset.read(index, sample.out);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      values.resize(static_cast<std::size_t>(fields[f].shape.elements()));
      convert_array(fields[f].dtype, sample.out[f], DType::F64, reinterpret_cast<std::byte*>(values.data()),
                    static_cast<std::int64_t>(values.size()));
      bool had = any[f];
      add_values(reports[f], had, index, values);
      any[f] = had;
      if (reports[f].first_sample == index) reports[f].first_place = dataset.locate(index);
    }
  }
  return reports;
}

}  // namespace lockstep::data
