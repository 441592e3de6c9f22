#include "data/datasets/click_records.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "data/datasets/click_columns.h"
#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/dataset_view.h"
#include "lockstep/data/file_pattern.h"
#include "lockstep/data/records/record_reader.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kRecordsSite = "records";

using data::DatasetOptions;

// The columns of "dense", "ids" and "label" as fields of their own. Columns lie in the order of the fields.
class NamedClicks : public data::DatasetView {
 public:
  NamedClicks(std::shared_ptr<const data::Dataset> clicks, const ClickRecord& names)
      : DatasetView(std::move(clicks), kRecordsSite) {
    for (const std::string& name : names.dense) fields_.push_back({name, Shape{}, DType::F32});
    for (std::size_t f = 0; f < names.ids.names.size(); ++f)
      fields_.push_back({names.ids.names[f], names.ids.is_bag(f) ? Shape{names.ids.width(f)} : Shape{}, DType::I64});
    if (std::ranges::find(whole().fields(), "label", &data::Field::name) != whole().fields().end())
      fields_.push_back({"label", Shape{}, DType::F32});
    data::check_fields(kRecordsSite, fields_);
  }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(std::int64_t index, std::span<std::byte* const> out) const override {
    data::SampleBuffers sample(whole().fields());
    whole().read(index, sample.out);
    std::size_t to = 0;
    for (const std::vector<std::byte>& field : sample.memory) {
      for (std::size_t at = 0; at < field.size(); at += fields_[to++].bytes())
        std::memcpy(out[to], field.data() + at, fields_[to].bytes());
    }
  }
  void read_random(std::int64_t index, const data::SampleKey&, std::span<std::byte* const> out) const override {
    read(index, out);
  }

 private:
  std::vector<data::Field> fields_;
};

// Some of the fields of a set, in another order.
class ChosenFields : public data::DatasetView {
 public:
  ChosenFields(std::shared_ptr<const data::Dataset> set, const std::vector<std::string>& names)
      : DatasetView(std::move(set), kRecordsSite) {
    for (const std::string& name : names) {
      places_.push_back(data::find_field(kRecordsSite, whole().fields(), name));
      fields_.push_back(whole().fields()[places_.back()]);
    }
  }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(std::int64_t index, std::span<std::byte* const> out) const override {
    data::SampleBuffers sample(whole().fields());
    whole().read(index, sample.out);
    for (std::size_t f = 0; f < fields_.size(); ++f) std::memcpy(out[f], sample.out[places_[f]], fields_[f].bytes());
  }
  void read_random(std::int64_t index, const data::SampleKey&, std::span<std::byte* const> out) const override {
    read(index, out);
  }

 private:
  std::vector<std::size_t> places_;
  std::vector<data::Field> fields_;
};

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void name_files(DatasetOptions& o) {
  if (!o.fields.files.empty()) return;
  const bool has_eval = is_there(o.dir / "eval.index");
  const bool predicts = o.purpose == data::Purpose::Predict;
  o.fields.files = predicts && has_eval ? "eval.index" : "train.index";
  check(is_there(o.dir / o.fields.files), kRecordsSite,
        "{}: no {}, expected what `lockstep pack --output` writes, or the name of another set in --files",
        o.dir.string(), o.fields.files);
  if (has_eval && o.fields.eval_files.empty()) o.fields.eval_files = "eval.index";
}

// Names of the fields that `wanted` accepts and no other option names.
template <class Wanted>
std::string names_among(const std::vector<data::Field>& fields, const std::vector<std::string>& taken,
                        const Wanted& wanted) {
  std::vector<std::string> names;
  for (const data::Field& field : fields) {
    if (wanted(field) && std::ranges::find(taken, field.name) == taken.end()) names.push_back(field.name);
  }
  return joined(names, ",");
}

}  // namespace

std::unique_ptr<data::Dataset> named_clicks(std::shared_ptr<const data::Dataset> clicks, const ClickRecord& names) {
  return std::make_unique<NamedClicks>(std::move(clicks), names);
}

ClickRecordNames name_click_records(const DatasetOptions& options, const ClickSetOptions& set) {
  ClickRecordNames named{.options = options, .set = set};
  data::FieldOptions& o = named.options.fields;
  name_files(named.options);
  if (o.label.empty()) o.label = "label";
  const std::vector<std::filesystem::path> files = data::expand_files(split_names("files", o.files), options.dir);
  const std::vector<data::Field> fields = data::RecordReader(files.front()).layout().fields;
  std::vector<std::string> taken = count_names(parse_bags(set.bags));
  taken.push_back(o.label);
  const bool has_dense = std::ranges::find(fields, "dense", &data::Field::name) != fields.end();
  if (o.inputs.empty() || (o.inputs == "dense" && !has_dense))
    o.inputs = names_among(fields, taken, [](const data::Field& field) { return is_floating(field.dtype); });
  if (named.set.ids.empty())
    named.set.ids = names_among(fields, taken, [](const data::Field& field) { return !is_floating(field.dtype); });
  check(!named.set.ids.empty(), kRecordsSite, "{}: no field of integers, expected records of clicks with ids",
        files.front().string());
  return named;
}

std::shared_ptr<data::Dataset> open_click_records(const DatasetOptions& options, const std::vector<std::string>& files,
                                                  const std::vector<std::string>& fields) {
  std::vector<std::unique_ptr<data::Dataset>> parts;
  for (const std::filesystem::path& path : data::expand_files(files, options.dir))
    parts.push_back(std::make_unique<data::RecordDataset>(data::RecordReader(path)));
  return std::make_shared<ChosenFields>(std::make_shared<data::ConcatDataset>(std::move(parts)), fields);
}

}  // namespace lockstep::datasets
