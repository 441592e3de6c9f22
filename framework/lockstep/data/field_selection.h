// The text with which a user names one field of a file, and the part of an array that it selects:
// "velocity=fields/v[:, 0:2, ::2]:f32" is the dataset fields/v, as field "velocity", of f32. Slices follow NumPy: one
// entry per axis, BEGIN:END:STEP with a positive step, a number (its axis goes), or "..." for all axes between. Numbers
// below 0 count from the end; a slice is cut at the ends of its axis. Any thread may call these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"

namespace lockstep::data {

struct AxisSelection {
  std::optional<std::int64_t> begin{}, end{};
  std::int64_t step = 1;
  bool index = false;  // the element `begin` alone, without its axis
  bool operator==(const AxisSelection&) const = default;
};

struct FieldSelection {
  std::string name{};                     // of the field; empty: the text has none
  std::string path{};                     // of the dataset, array or file
  std::vector<AxisSelection> axes{};      // axes without an entry are taken whole
  std::optional<std::size_t> ellipsis{};  // number of entries before "..."; those after it belong to the last axes
  std::optional<DType> dtype{};           // none: as stored
  bool operator==(const FieldSelection&) const = default;
};

// Throws Error with the text, the position and the expectation.
FieldSelection parse_field(std::string_view text);
std::vector<FieldSelection> parse_fields(const std::vector<std::string>& texts);

// The part of one axis: begin, begin + step, ..., `count` elements. An axis that is not kept has count 1.
struct AxisRange {
  std::int64_t begin = 0, count = 0, step = 1;
  bool kept = true;
  bool operator==(const AxisRange&) const = default;
};

// Applies a selection to an array of this shape, one range per axis. Axis `sample_axis` counts samples (-1: none does)
// and needs a slice. Throws Error at `site` for too many entries, an index outside its axis, and a slice that selects
// no element of an axis that has some.
std::vector<AxisRange> resolve(const FieldSelection& selection, const Shape& whole, std::int64_t sample_axis,
                               std::string_view site);
// The shape of the selected part, without the axis of samples.
Shape selected_shape(std::span<const AxisRange> ranges, std::int64_t sample_axis);

// Copies the selected elements, of `element` bytes each, of a dense array of shape `whole` to `out`, densely.
void copy_selected(std::span<const AxisRange> ranges, const Shape& whole, std::size_t element, const std::byte* in,
                   std::byte* out);

}  // namespace lockstep::data
