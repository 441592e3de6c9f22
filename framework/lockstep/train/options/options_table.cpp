#include "lockstep/train/options/options_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/near_names.h"

namespace lockstep::train {
namespace {

std::string low_text(const OptionRow& row) {
  return fmt::format("{} {}", row.above_low ? "above" : "at least", row.low);
}
std::string whole_range(const OptionRow& row) {
  return fmt::format("{} and {} {}", low_text(row), row.below_high ? "below" : "at most", row.high);
}

std::string expectation(const OptionRow& row, double value) {
  const bool low_alone = row.high >= kMaxCount && value <= row.high;
  return "a number " + (low_alone ? low_text(row) : whole_range(row));
}

bool is_within(const OptionRow& row, double value) {
  const bool above = row.above_low ? value > row.low : value >= row.low;
  return above && (row.below_high ? value < row.high : value <= row.high);
}

double in_f32(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return value > kLargest ? std::numeric_limits<double>::infinity() : static_cast<double>(static_cast<float>(value));
}

struct ValueText {
  std::string operator()(const bool* flag) const { return *flag ? "on" : "off"; }
  std::string operator()(const Negated& flag) const { return flag.value() ? "on" : "off"; }
  std::string operator()(const std::string* text) const { return text->empty() ? "none" : *text; }
  std::string operator()(const std::filesystem::path* path) const { return path->empty() ? "none" : path->string(); }
  std::string operator()(const Choice& choice) const { return std::string(choice.name()); }
  std::string operator()(const std::vector<double>* numbers) const {
    return numbers->empty() ? "none" : fmt::format("{}", fmt::join(*numbers, ","));
  }
  template <class T>
  std::string operator()(const T* number) const {
    return fmt::format("{}", *number);
  }
};

struct CheckRow {
  const OptionRow& row;
  Precision precision;

  void operator()(const bool*) const {}
  void operator()(const Negated&) const {}
  void operator()(const Choice&) const {}
  void operator()(const std::filesystem::path*) const {}
  void operator()(const std::string* text) const {
    const auto accepts = [&](std::string_view name) {
      return name.starts_with('*') ? text->ends_with(name.substr(1)) : *text == name;
    };
    if (!row.names.empty() && std::ranges::none_of(row.names, accepts))
      throw Error(fmt::format("[{}] {}", kOptionsSite, unknown_name(row, *text)));
  }
  void operator()(const std::vector<double>* numbers) const {
    for (double value : *numbers) check_number(value);
    check(!row.rises || std::adjacent_find(numbers->begin(), numbers->end(), std::greater_equal<>{}) == numbers->end(),
          kOptionsSite, "--{} is {}, expected rising numbers", row.name, joined(*numbers, ","));
  }
  template <class T>
  void operator()(const T* number) const {
    check_number(*number);
  }

  template <class T>
  void check_number(const T& member) const {
    const double value = static_cast<double>(member);
    check(std::isfinite(value) && is_within(row, value), kOptionsSite, "--{} is {}, expected {}", row.name, member,
          expectation(row, value));
    if (row.rounding != Rounding::ToWeights || precision == Precision::F64) return;
    const double rounded = in_f32(value);
    check(std::isfinite(rounded) && (value == 0 || rounded != 0) && is_within(row, rounded), kOptionsSite,
          "--{} is {}, which is {} in f32, the type of weights with --precision {}; expected {} that stays so "
          "when it is rounded, or --precision f64",
          row.name, member, rounded, choice_name(precision), expectation(row, value));
  }
};

}  // namespace

std::vector<OptionGroup> option_groups(Options& options) {
  return {data_rows(options),    field_rows(options),  sample_rows(options),   image_rows(options),
          augment_rows(options), stream_rows(options), training_rows(options), optimiser_rows(options),
          rate_rows(options),    tuning_rows(options), rank_rows(options),     communication_rows(options),
          run_rows(options),     trial_rows(options),  safety_rows(options)};
}

std::vector<OptionRow> option_rows(Options& options) {
  std::vector<OptionRow> all;
  for (OptionGroup& group : option_groups(options)) std::ranges::move(group.rows, std::back_inserter(all));
  return all;
}

bool is_for(const OptionRow& row, const data::DatasetEntry& dataset) {
  if (row.data == ForData::Any) return true;
  if (std::ranges::find(dataset.ignores, row.name) != dataset.ignores.end()) return false;
  if (row.data == ForData::Labels) return true;
  const bool streams = dataset.kind == data::DatasetKind::Stream, fields = dataset.kind == data::DatasetKind::Fields;
  if (streams || row.data == ForData::Streams) return streams && row.data == ForData::Streams;
  if (row.data == ForData::FieldsAndImageSets) return fields || dataset.takes_images;
  return row.data == ForData::ImageSets ? dataset.takes_images : fields == (row.data == ForData::Fields);
}

bool is_for(const OptionRow& row, data::Catalogue datasets) {
  return datasets.empty() ||
         std::ranges::any_of(datasets, [&](const data::DatasetEntry& entry) { return is_for(row, entry); });
}

void check_read(std::span<const OptionRow> rows, std::span<const std::string> usual, data::Catalogue datasets,
                std::string_view chosen) {
  const auto dataset = std::ranges::find(datasets, chosen, &data::DatasetEntry::name);
  for (std::size_t i = 0; dataset != datasets.end() && i < rows.size(); ++i) {
    if (is_for(rows[i], *dataset) || value_text(rows[i]) == usual[i]) continue;
    std::vector<std::string_view> readers;
    for (const data::DatasetEntry& entry : datasets) {
      if (is_for(rows[i], entry)) readers.push_back(entry.name);
    }
    throw Error(fmt::format("[{}] --{} is {}, which --dataset {} does not read; it is for {}", kOptionsSite,
                            rows[i].name, value_text(rows[i]), chosen, fmt::join(readers, ", ")));
  }
}

void offer(data::Catalogue datasets, OptionRow& row) {
  std::vector<std::string> texts;
  for (const data::DatasetEntry& entry : datasets) {
    texts.push_back(fmt::format("{} ({})", entry.name, entry.description));
    row.names.push_back(entry.name);
  }
  row.text = fmt::format("{}", fmt::join(texts, "; "));
}

std::string argument_of(const OptionRow& row) {
  return std::visit(
      [&]<class V>(const V&) -> std::string {
        using T = std::remove_pointer_t<V>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<V, Negated>) return "";
        if constexpr (std::is_integral_v<T>) return "N";
        if constexpr (std::is_floating_point_v<T>) return "X";
        if constexpr (std::is_same_v<V, Choice>) return "NAME";
        if (!row.names.empty()) return "NAME";
        return row.argument.empty() ? std::is_same_v<T, std::vector<double>> ? "X,..." : "TEXT" : row.argument;
      },
      row.value);
}

std::string range_text(const OptionRow& row) {
  if (row.high < kMaxCount) return whole_range(row);
  return row.above_low || (row.low != 0 && row.low > -kMaxCount) ? low_text(row) : "";
}

std::string value_text(const OptionRow& row) { return std::visit(ValueText{}, row.value); }

std::vector<std::string> names_of(const OptionRow& row) {
  const auto* choice = std::get_if<Choice>(&row.value);
  if (choice == nullptr) return row.names;
  const std::vector<std::string_view> names = choice->names();
  return {names.begin(), names.end()};
}

std::string unknown_name(const OptionRow& row, std::string_view given) {
  const std::vector<std::string> names = names_of(row);
  const std::string near = nearest_name(given, names);
  return fmt::format("--{} is '{}', expected one of {}{}", row.name, given, fmt::join(names, ", "),
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

void check_ranges(std::span<const OptionRow> rows, Precision precision) {
  for (const OptionRow& row : rows) std::visit(CheckRow{row, precision}, row.value);
}

}  // namespace lockstep::train
