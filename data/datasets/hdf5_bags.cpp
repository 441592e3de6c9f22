#include "data/datasets/hdf5_bags.h"

#include <algorithm>
#include <array>
#include <vector>

#include "data/datasets/id_rows.h"
#include "lockstep/core/error.h"
#include "lockstep/data/convert_array.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kBags = "hdf5";
constexpr std::int64_t kOffsetsAtOnce = 1 << 20;

}  // namespace

void Hdf5Bag::Integers::read(io::Hdf5Reader& reader, const std::string& file, std::int64_t begin,
                             std::span<std::int64_t> out) const {
  const io::Hdf5Slab slab{.start = {begin}, .count = {std::ssize(out)}, .step = {1}};
  if (info.dtype == DType::I64) return reader.read(file, name, info, slab, std::as_writable_bytes(out));
  std::vector<std::byte> stored(out.size() * size_of(info.dtype));
  reader.read(file, name, info, slab, stored);
  data::convert_array(info.dtype, stored.data(), DType::I64, reinterpret_cast<std::byte*>(out.data()), std::ssize(out));
}

Hdf5Bag::Integers Hdf5Bag::open_integers(io::Hdf5Reader& reader, const std::string& file, const std::string& name) {
  Integers array{.name = name, .info = reader.info(file, name)};
  check(array.info.shape.rank() == 1 && !is_floating(array.info.dtype), kBags,
        "{}: '{}' is {} {}, expected integers in one axis: ids of all samples one after the other, or offsets", file,
        name, lockstep::name_of(array.info.dtype), array.info.shape.str());
  return array;
}

std::optional<Hdf5Bag> Hdf5Bag::open(io::Hdf5Reader& reader, const std::string& file, const std::string& ids,
                                     const ClickBag& bag) {
  Hdf5Bag result;
  result.places_ = bag.places;
  const std::int64_t lists = reader.lists(file, ids);
  check(lists < 0 || (bag.offsets.empty() && bag.counts.empty()), kBags,
        "{}: elements of '{}' are lists, which have their lengths; expected --bags {} without offsets= and counts=",
        file, ids, bag.field);
  if (lists >= 0) {
    result.ids_.name = ids;
    result.samples_ = lists;
    return result;
  }
  if (bag.offsets.empty()) return std::nullopt;
  result.ids_ = open_integers(reader, file, ids);
  result.offsets_ = open_integers(reader, file, bag.offsets);
  check(result.offsets_->size() > 0, kBags,
        "{}: '{}' has no offsets, expected the place at which each bag begins, and the end of the last one", file,
        bag.offsets);
  result.samples_ = result.offsets_->size() - 1;
  result.check_all_offsets(reader, file);
  return result;
}

// `offsets` begin at index `first`; the one before has been checked.
void Hdf5Bag::check_offsets(const std::string& file, std::int64_t first, std::span<const std::int64_t> offsets) const {
  std::int64_t least = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] >= least && offsets[i] <= ids_.size()) {
      least = offsets[i];
      continue;
    }
    fail(kBags,
         "{}: '{}'[{}] is {}, expected a number from {} (the offset before it) to {} (the number of ids in '{}')", file,
         offsets_->name, first + static_cast<std::int64_t>(i), offsets[i], least, ids_.size(), ids_.name);
  }
}

void Hdf5Bag::check_all_offsets(io::Hdf5Reader& reader, const std::string& file) const {
  std::vector<std::int64_t> offsets;
  // Parts overlap by one offset, so that each is compared with the one before it.
  for (std::int64_t begin = 0; begin < offsets_->size(); begin += kOffsetsAtOnce) {
    offsets.resize(static_cast<std::size_t>(std::min(kOffsetsAtOnce + 1, offsets_->size() - begin)));
    offsets_->read(reader, file, begin, offsets);
    check_offsets(file, begin, offsets);
  }
}

void Hdf5Bag::read(io::Hdf5Reader& reader, const std::string& file, std::int64_t sample, std::int64_t* out) const {
  const std::span places(out, static_cast<std::size_t>(places_));
  std::int64_t count = 0;
  if (offsets_) {
    std::array<std::int64_t, 2> bounds{};
    offsets_->read(reader, file, sample, bounds);
    check_offsets(file, sample, bounds);  // the file may have changed
    count = bounds[1] - bounds[0];
    if (count <= places_ && count > 0)
      ids_.read(reader, file, bounds[0], places.first(static_cast<std::size_t>(count)));
  } else {
    count = reader.read_list(file, ids_.name, sample, places);
  }
  if (count > places_)
    fail(kBags, "{}: '{}', sample {}: a bag of {} ids, expected at most {}; --bags FIELD:{} has places for them", file,
         ids_.name, sample, count, places_, count);
  std::ranges::fill(places.subspan(static_cast<std::size_t>(count)), kMissingId);
}

}  // namespace lockstep::datasets
