#include "data/datasets/click_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "data/datasets/id_rows.h"
#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickColumnsSite = "clicks";

template <class To, class From>
void convert_as(const std::byte* from, std::int64_t count, To* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    to[i] = static_cast<To>(value);
  }
}

// Converts the elements of a field and returns the place behind them.
template <class To>
To* convert(const data::Field& field, const std::byte* from, To* to) {
  const std::int64_t count = field.shape.elements();
  switch (field.dtype) {
    case DType::F32:
      convert_as<To, float>(from, count, to);
      break;
    case DType::F64:
      convert_as<To, double>(from, count, to);
      break;
    case DType::I32:
      convert_as<To, std::int32_t>(from, count, to);
      break;
    case DType::I64:
      convert_as<To, std::int64_t>(from, count, to);
      break;
    case DType::U8:
      convert_as<To, std::uint8_t>(from, count, to);
      break;
    case DType::BF16:
      fail(kClickColumnsSite, "'{}' is bf16, expected f32, f64 or integers", field.name);
  }
  return to + count;
}

void add_names(const data::Field& field, std::vector<std::string>& names) {
  const std::int64_t count = field.shape.elements();
  for (std::int64_t i = 0; i < count; ++i)
    names.push_back(count == 1 ? field.name : formatted("{}[{}]", field.name, i));
}

}  // namespace

std::vector<std::string> count_names(const std::vector<ClickBag>& bags) {
  std::vector<std::string> names;
  for (const ClickBag& bag : bags) {
    if (!bag.counts.empty()) names.push_back(bag.counts);
  }
  return names;
}

ClickColumns::ClickColumns(std::shared_ptr<const data::Dataset> whole, ClickColumnsOptions options)
    : DatasetView(std::move(whole), kClickColumnsSite), options_(std::move(options)) {
  const std::vector<data::Field>& from = this->whole().fields();
  const std::size_t counts = count_names(options_.bags).size(), arrays = options_.dense + options_.ids;
  check(from.size() == arrays + counts + (options_.label ? 1 : 0) && options_.ids > 0, kClickColumnsSite,
        "the samples have {} arrays, expected {} of numbers, {} of ids (at least 1), {} of counts and {} label",
        from.size(), options_.dense, options_.ids, counts, options_.label ? "a" : "no");
  for (std::size_t f = 0; f < options_.dense; ++f) add_names(from[f], dense_names_);
  for (std::size_t f = options_.dense; f < arrays; ++f) add_ids(from[f], f);
  for (std::size_t f = arrays; f < from.size(); ++f) {
    const bool is_count = f < arrays + counts;
    check(from[f].shape.elements() == 1 && (!is_count || !is_floating(from[f].dtype)), kClickColumnsSite,
          "the {} '{}' has samples {}{}, expected one {}", is_count ? "count" : "label", from[f].name,
          name_of(from[f].dtype), from[f].shape.str(), is_count ? "integer" : "number");
  }
  check(!id_names_.empty(), kClickColumnsSite, "the arrays of ids have no elements, expected at least one");
  check_bags(options_.bags, id_names_);
  if (!dense_names_.empty()) fields_.push_back({"dense", Shape{std::ssize(dense_names_)}, DType::F32});
  fields_.push_back({"ids", Shape{columns_of(id_places_)}, DType::I64});
  if (options_.label) fields_.push_back({"label", Shape{}, DType::F32});
}

void ClickColumns::add_ids(const data::Field& field, std::size_t number) {
  check(!is_floating(field.dtype), kClickColumnsSite, "the ids '{}' are {}, expected integers", field.name,
        name_of(field.dtype));
  const ClickBag* const bag = find_bag(options_.bags, field.name);
  if (bag == nullptr) {
    add_names(field, id_names_);
    id_places_.resize(id_names_.size(), 0);
    return;
  }
  check(field.shape.elements() > 0, kClickColumnsSite, "the bag '{}' has no elements, expected at least one",
        field.name);
  if (!bag->counts.empty()) {
    const std::vector<std::string> counts = count_names(options_.bags);
    const auto place = static_cast<std::size_t>(std::ranges::find(counts, bag->counts) - counts.begin());
    counted_.push_back(
        {.ids = number, .counts = options_.dense + options_.ids + place, .column = columns_of(id_places_)});
  }
  id_names_.push_back(field.name);
  id_places_.push_back(field.shape.elements());
}

// Empties the places of bags behind their counts.
void ClickColumns::check_ids(std::int64_t index, std::span<const std::byte* const> in,
                             std::span<std::int64_t> ids) const {
  const std::vector<data::Field>& from = whole().fields();
  for (const Counted& bag : counted_) {
    std::int64_t count = 0;
    convert(from[bag.counts], in[bag.counts], &count);
    const std::int64_t places = from[bag.ids].shape.elements();
    if (count < 0 || count > places)
      fail(kClickColumnsSite, "{}: the count '{}' is {}, expected 0 to {}, the elements of '{}'", locate(index),
           from[bag.counts].name, count, places, from[bag.ids].name);
    std::ranges::fill(
        ids.subspan(static_cast<std::size_t>(bag.column + count), static_cast<std::size_t>(places - count)),
        kMissingId);
  }
  const auto wrong = std::ranges::find_if(ids, [](std::int64_t id) { return id < kMissingId; });
  if (wrong != ids.end())
    fail(kClickColumnsSite, "{}: the id in column {} is {}, expected a number from 0 on, or -1 for a missing id",
         locate(index), wrong - ids.begin(), *wrong);
}

template <class Read>
void ClickColumns::join(std::int64_t index, std::span<std::byte* const> out, const Read& read) const {
  const std::vector<data::Field>& from = whole().fields();
  data::SampleBuffers sample(from);
  const std::vector<std::byte*>& pointers = sample.out;
  read(pointers);
  std::size_t place = 0;
  auto* dense = dense_names_.empty() ? nullptr : reinterpret_cast<float*>(out[place++]);
  auto* const ids = reinterpret_cast<std::int64_t*>(out[place++]);
  std::int64_t* next = ids;
  for (std::size_t f = 0; f < options_.dense + options_.ids; ++f) {
    if (f < options_.dense)
      dense = convert(from[f], pointers[f], dense);
    else
      next = convert(from[f], pointers[f], next);
  }
  const std::span<const float> numbers(dense - dense_names_.size(), dense_names_.size());
  const auto wrong = std::ranges::find_if_not(numbers, [](float x) { return std::isfinite(x); });
  if (wrong != numbers.end())
    fail(kClickColumnsSite, "{}: '{}' is {}, expected a finite number that f32 holds", locate(index),
         dense_names_[static_cast<std::size_t>(wrong - numbers.begin())], *wrong);
  const std::vector<const std::byte*> in(pointers.begin(), pointers.end());
  check_ids(index, in, {ids, next});
  if (!options_.label) return;
  auto* const label = reinterpret_cast<float*>(out[place]);
  convert(from.back(), pointers.back(), label);
  if (!(*label >= 0 && *label <= 1))
    fail(kClickColumnsSite, "{}: the label '{}' is {}, expected 0 or 1, or a number between", locate(index),
         from.back().name, *label);
}

void ClickColumns::read(std::int64_t index, std::span<std::byte* const> out) const {
  join(index, out, [&](std::span<std::byte* const> to) { whole().read(index, to); });
}

void ClickColumns::read_random(std::int64_t index, const data::SampleKey& key, std::span<std::byte* const> out) const {
  join(index, out, [&](std::span<std::byte* const> to) { whole().read_random(index, key, to); });
}

}  // namespace lockstep::datasets
