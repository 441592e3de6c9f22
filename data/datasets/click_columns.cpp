#include "data/datasets/click_columns.h"

#include <cstring>
#include <utility>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"

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

ClickColumns::ClickColumns(std::shared_ptr<const data::Dataset> whole, ClickColumnsOptions options)
    : DatasetView(std::move(whole), kClickColumnsSite), options_(options) {
  const std::vector<data::Field>& from = this->whole().fields();
  const std::size_t expected = options_.dense + options_.ids + (options_.label ? 1 : 0);
  check(from.size() == expected && options_.ids > 0, kClickColumnsSite,
        "the samples have {} arrays, expected {} of numbers, {} of ids (at least 1) and {} label", from.size(),
        options_.dense, options_.ids, options_.label ? "a" : "no");
  for (std::size_t f = 0; f < from.size(); ++f) {
    if (f < options_.dense) {
      add_names(from[f], dense_names_);
    } else if (f < options_.dense + options_.ids) {
      check(!is_floating(from[f].dtype), kClickColumnsSite, "the ids '{}' are {}, expected integers", from[f].name,
            name_of(from[f].dtype));
      add_names(from[f], id_names_);
    } else {
      check(from[f].shape.elements() == 1, kClickColumnsSite, "the label '{}' has samples {}, expected one number",
            from[f].name, from[f].shape.str());
    }
  }
  check(!id_names_.empty(), kClickColumnsSite, "the arrays of ids have no elements, expected at least one");
  if (!dense_names_.empty()) fields_.push_back({"dense", Shape{std::ssize(dense_names_)}, DType::F32});
  fields_.push_back({"ids", Shape{std::ssize(id_names_)}, DType::I64});
  if (options_.label) fields_.push_back({"label", Shape{}, DType::F32});
}

template <class Read>
void ClickColumns::join(std::int64_t index, std::span<std::byte* const> out, const Read& read) const {
  const std::vector<data::Field>& from = whole().fields();
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> pointers;
  for (const data::Field& field : from) pointers.push_back(memory.emplace_back(field.bytes()).data());
  read(pointers);
  std::size_t place = 0;
  auto* dense = dense_names_.empty() ? nullptr : reinterpret_cast<float*>(out[place++]);
  auto* ids = reinterpret_cast<std::int64_t*>(out[place++]);
  for (std::size_t f = 0; f < options_.dense + options_.ids; ++f) {
    if (f < options_.dense)
      dense = convert(from[f], pointers[f], dense);
    else
      ids = convert(from[f], pointers[f], ids);
  }
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
