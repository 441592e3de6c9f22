#include "lockstep/data/run_data.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/data/batch_mix.h"
#include "lockstep/data/pipeline.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kSite = "data";

std::vector<Field> fields_after(const Dataset& dataset, const Transforms& transforms) {
  return Pipeline(dataset.fields(), transforms).fields();
}

std::string text_of(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& f : fields)
    text += formatted("{}{} {}{}", text.empty() ? "" : ", ", f.name, name_of(f.dtype), f.shape.str());
  return text;
}

void check_same(const Dataset& set, const std::vector<Field>& fields, const std::vector<Field>& expected) {
  lockstep::check(fields == expected, kSite, "{} has the fields {}, expected those of the training samples: {}",
                  set.describe(), text_of(fields), text_of(expected));
}

}  // namespace

std::vector<Field> RunData::fields() const { return fields_after(*train, eval_transforms); }

Shape RunData::shape_of(std::string_view field) const {
  const std::vector<Field> all = fields();
  return all[find_field(kSite, all, field)].shape;
}

std::int64_t RunData::replaced() const {
  std::int64_t all = 0;
  for (const auto& set : replacing) all += set->replaced();
  return all;
}

void RunData::check() const {
  lockstep::check(train != nullptr, kSite, "there is no training set, expected one");
  std::vector<Field> trained = fields_after(*train, train_transforms);
  if (mix) trained = mix->fields(trained);
  check_same(*train, fields(), trained);
  if (eval) check_same(*eval, fields_after(*eval, eval_transforms), trained);
  for (const auto& [name, set] : more_eval) {
    lockstep::check(set != nullptr, kSite, "the evaluation set '{}' is null, expected a data set", name);
    check_same(*set, fields_after(*set, eval_transforms), trained);
  }
}

void convert_floats(RunData& data, DType floats) {
  const auto convert = [&](Transforms& transforms) {
    const std::vector<Field> fields = fields_after(*data.train, transforms);
    const bool differs = std::ranges::any_of(
        fields, [&](const Field& f) { return (f.dtype == DType::F32 || f.dtype == DType::F64) && f.dtype != floats; });
    if (differs) transforms.push_back(std::make_shared<ConvertFloats>(floats));
  };
  convert(data.train_transforms);
  convert(data.eval_transforms);
}

}  // namespace lockstep::data
