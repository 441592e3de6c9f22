#include "data/datasets/id_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kIdRowsSite = "ids";
constexpr std::string_view kIds = "ids", kRawIds = "raw_ids";

}  // namespace

void IdRows::check() const {
  lockstep::check(!sizes.empty() && names.size() == sizes.size(), kIdRowsSite,
                  "{} sizes and {} names of fields, expected one each", sizes.size(), names.size());
  lockstep::check(
      places.empty() || (places.size() == sizes.size() &&
                         std::ranges::all_of(places, [](std::int64_t n) { return n >= 0 && n <= 1 << 16; })),
      kIdRowsSite, "{} numbers of places for {} fields, expected one from 0 to {} each", places.size(), sizes.size(),
      1 << 16);
  const std::int64_t least = mapping == IdMapping::Direct ? 1 : 2;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::int64_t all = 0;
  for (std::size_t f = 0; f < sizes.size(); ++f) {
    lockstep::check(sizes[f] >= least && sizes[f] <= kMost, kIdRowsSite,
                    "field '{}' has {} rows, expected {} to {}{}{}", names[f], sizes[f], least, kMost,
                    mapping == IdMapping::Direct ? "; " : "", mapping == IdMapping::Direct ? kIdRemedies : "");
    all += sizes[f];
  }
  lockstep::check(all <= kMost, kIdRowsSite, "the {} fields have {} rows together, expected at most {}", sizes.size(),
                  all, kMost);
}

std::int64_t IdRows::rows() const { return first_row(sizes.size()); }

std::int64_t IdRows::first_row(std::size_t field) const {
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(field), std::int64_t{0});
}

std::int64_t IdRows::columns() const { return first_column(names.size()); }

std::int64_t IdRows::first_column(std::size_t field) const {
  std::int64_t column = 0;
  for (std::size_t f = 0; f < field; ++f) column += width(f);
  return column;
}

std::int64_t hashed_row(std::int64_t id, std::size_t field, std::int64_t size) {
  if (id == kMissingId) return 0;
  const std::uint64_t hash = mix(static_cast<std::uint64_t>(id), field);
  return 1 +
         static_cast<std::int64_t>(static_cast<unsigned __int128>(hash) * static_cast<std::uint64_t>(size - 1) >> 64);
}

std::int64_t IdRows::row(std::size_t field, std::int64_t id, const std::function<std::string()>& place) const {
  if (mapping == IdMapping::Hash) return hashed_row(id, field, sizes[field]);
  if (mapping == IdMapping::Vocabulary) return 0;
  if (id < 0 || id >= sizes[field]) [[unlikely]]
    fail(kIdRowsSite, "field '{}' of {}: the id is {}, expected 0 to {}; {}", names[field], place(),
         id == kMissingId ? "missing" : formatted("{}", id), sizes[field] - 1, kIdRemedies);
  return id;
}

MapIds::MapIds(IdRows rows) : rows_(std::move(rows)), padding_(rows_.padding()) { rows_.check(); }

std::vector<data::Field> MapIds::fields(const std::vector<data::Field>& in) const {
  std::vector<data::Field> out = in;
  data::Field& ids = out[data::find_field(kIdRowsSite, in, kIds)];
  const std::int64_t wanted = rows_.columns();
  check(ids.dtype == DType::I64 && ids.shape == Shape{wanted}, kIdRowsSite, "a sample's ids are {}{}, expected i64({})",
        name_of(ids.dtype), ids.shape.str(), wanted);
  ids.dtype = DType::I32;
  if (rows_.mapping == IdMapping::Vocabulary) out.push_back({std::string(kRawIds), ids.shape, DType::I64});
  return out;
}

void MapIds::apply(const data::SampleKey& key, const std::vector<data::Field>& shape,
                   std::span<const std::byte* const> in, std::span<std::byte* const> out) const {
  const auto place = [&] { return formatted("sample {}", key.index); };
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].name != kIds) {
      std::memcpy(out[i], in[i], shape[i].bytes());
      continue;
    }
    const auto* ids = reinterpret_cast<const std::int64_t*>(in[i]);
    auto* rows = reinterpret_cast<std::int32_t*>(out[i]);
    std::int64_t first = 0, column = 0;
    for (std::size_t f = 0; f < rows_.sizes.size(); ++f) {
      for (const std::int64_t end = column + rows_.width(f); column < end; ++column) {
        const bool none = rows_.is_bag(f) && ids[column] == kMissingId;
        rows[column] = static_cast<std::int32_t>(none ? padding_ : first + rows_.row(f, ids[column], place));
      }
      first += rows_.sizes[f];
    }
    if (rows_.mapping == IdMapping::Vocabulary) std::memcpy(out.back(), ids, shape[i].bytes());
  }
}

}  // namespace lockstep::datasets
