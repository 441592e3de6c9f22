// How the ids of data become rows of one table of embeddings: the fields of a sample have consecutive ranges of rows.
// An id is an i64; -1 is a missing one. Values and const functions: any thread.
//
//   Direct      row = id, from 0 to the field's size - 1; any other id is an error
//   Hash        row 0: missing; else 1 + floor(h (size - 1) / 2^64) with h = mix(id, field), SplitMix64's finaliser
//               (core/random.h): the same on every machine and in every version
//   Vocabulary  row 0: missing and unknown; else the row that a vocabulary gives, which grows in training
//
// A field that is a bag (data/datasets/click_bags.h) has several columns of ids, and a missing id is no id there: its
// row is the one behind the rows of all fields.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::datasets {

inline constexpr std::int64_t kMissingId = -1;
// The advice about ids that are no rows, for errors.
inline constexpr std::string_view kIdRemedies =
    "--hash-ids N maps any id to one of N rows, and --vocabulary N gives rows to ids as training sees them";

enum class IdMapping : std::uint8_t { Direct, Hash, Vocabulary };

struct IdRows {
  IdMapping mapping = IdMapping::Direct;
  std::vector<std::string> names{};   // of the fields
  std::vector<std::int64_t> sizes{};  // rows of each field
  // Columns of each bag, 0 for a field with one id; empty: no field is a bag.
  std::vector<std::int64_t> places{};

  // Throws Error at site "ids" for no field, sizes below 1 (below 2 with row 0 for missing ids), names that do not fit
  // and more than 2^31 - 1 rows of all fields.
  void check() const;
  std::int64_t rows() const;                       // of all fields
  std::int64_t padding() const { return rows(); }  // the row of places in a bag that have no id
  bool is_bag(std::size_t field) const { return field < places.size() && places[field] > 0; }
  std::int64_t width(std::size_t field) const { return is_bag(field) ? places[field] : 1; }  // columns of a field
  std::int64_t columns() const;                                                              // of all fields
  std::int64_t first_column(std::size_t field) const;
  std::int64_t first_row(std::size_t field) const;
  // Returns the row within the field, 0 with Vocabulary. Throws Error at site "ids" with field, `place` and id for an
  // id that Direct refuses.
  std::int64_t row(std::size_t field, std::int64_t id, const std::function<std::string()>& place) const;
};

// Returns the row within a field of `size` rows.
std::int64_t hashed_row(std::int64_t id, std::size_t field, std::int64_t size);

// Makes "ids" I64 (columns) to "ids" I32 (columns), rows of the table. With Vocabulary there is a field "raw_ids"
// besides, the ids as they were: threads make samples ahead of the training, so the rows are filled in when a batch is
// used. Copies other fields.
class MapIds : public data::Transform {
 public:
  explicit MapIds(IdRows rows);
  std::vector<data::Field> fields(const std::vector<data::Field>& in) const override;
  void apply(const data::SampleKey& key, const std::vector<data::Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  IdRows rows_;
  std::int64_t padding_;
};

}  // namespace lockstep::datasets
