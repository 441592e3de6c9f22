#include "lockstep/data/run_data.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/data/batch_mix.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kRunDataSite = "data";

std::string text_of(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& f : fields)
    text += formatted("{}{} {}{}", text.empty() ? "" : ", ", f.name, name_of(f.dtype), f.shape.str());
  return text;
}

std::vector<Field> fields_after(std::vector<Field> fields, const Transforms& transforms) {
  for (const auto& transform : transforms) {
    lockstep::check(transform != nullptr, kRunDataSite, "a transform of samples ({}) is null", text_of(fields));
    fields = transform->fields(fields);
    check_fields(kRunDataSite, fields);
  }
  return fields;
}

void check_same(const std::string& set, const std::vector<Field>& fields, const std::vector<Field>& expected) {
  lockstep::check(fields == expected, kRunDataSite, "{} has the fields {}, expected those of the training samples: {}",
                  set, text_of(fields), text_of(expected));
}

}  // namespace

std::int64_t RunData::classes() const {
  if (!labels.counts.empty()) return std::ssize(labels.counts);
  if (prediction.classes > 0) return prediction.classes;
  return train ? train->classes() : 0;
}

std::vector<Field> RunData::fields() const {
  std::vector<Field> all = fields_after(source_fields(), eval_transforms);
  all.insert(all.end(), prediction.absent.begin(), prediction.absent.end());
  return all;
}

Shape RunData::shape_of(std::string_view field) const {
  const std::vector<Field> all = fields();
  return all[find_field(kRunDataSite, all, field)].shape;
}

std::int64_t RunData::replaced() const {
  std::int64_t all = 0;
  for (const auto& set : replacing) all += set->replaced();
  return all;
}

void RunData::check() const {
  lockstep::check(train != nullptr || stream.has_value(), kRunDataSite, "there is no training set, expected one");
  lockstep::check(train == nullptr || !stream, kRunDataSite,
                  "there are a training set and a stream, expected one of the two");
  if (stream) {
    check_fields(kRunDataSite, stream->fields);
    lockstep::check(stream->open != nullptr, kRunDataSite, "StreamSource::open is empty, expected a function");
    lockstep::check(stream->prefetch >= 0, kRunDataSite, "StreamSource::prefetch is {}, expected at least 0",
                    stream->prefetch);
  }
  lockstep::check(!stream || (epoch.mix == nullptr && epoch.order == nullptr && epoch.supply == nullptr), kRunDataSite,
                  "a stream and RunData::epoch are given, expected its order, supply and mix to be empty: they are for "
                  "training sets");
  std::vector<Field> trained = fields_after(source_fields(), train_transforms);
  if (epoch.mix) trained = epoch.mix->fields(trained);
  check_same(stream ? stream->description : train->describe(), fields_after(source_fields(), eval_transforms), trained);
  if (eval) check_same(eval->describe(), fields_after(eval->fields(), eval_transforms), trained);
  for (const auto& [name, set] : more_eval) {
    lockstep::check(set != nullptr, kRunDataSite, "the evaluation set '{}' is null, expected a data set", name);
    check_same(set->describe(), fields_after(set->fields(), eval_transforms), trained);
  }
}

void convert_floats(RunData& data, DType floats) {
  const auto convert = [&](Transforms& transforms) {
    const std::vector<Field> fields = fields_after(data.source_fields(), transforms);
    const bool differs = std::ranges::any_of(
        fields, [&](const Field& f) { return (f.dtype == DType::F32 || f.dtype == DType::F64) && f.dtype != floats; });
    if (differs) transforms.push_back(std::make_shared<ConvertFloats>(floats));
  };
  convert(data.train_transforms);
  convert(data.eval_transforms);
}

}  // namespace lockstep::data
