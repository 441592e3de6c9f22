#include "lockstep/data/run_data.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/data/batch_mix.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kSite = "data";

std::vector<Field> fields_after(const Dataset& dataset, const Transforms& transforms) {
  std::vector<Field> fields = dataset.fields();
  for (const auto& transform : transforms) {
    lockstep::check(transform != nullptr, kSite, "a transform of {} is null", dataset.describe());
    fields = transform->fields(fields);
    check_fields(kSite, fields);
  }
  return fields;
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

std::int64_t RunData::classes() const {
  if (!class_counts.empty()) return std::ssize(class_counts);
  return absent_classes > 0 ? absent_classes : train->classes();
}

std::vector<Field> RunData::fields() const {
  std::vector<Field> all = fields_after(*train, eval_transforms);
  all.insert(all.end(), absent.begin(), absent.end());
  return all;
}

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
  check_same(*train, fields_after(*train, eval_transforms), trained);
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
