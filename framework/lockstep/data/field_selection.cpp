#include "lockstep/data/field_selection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

// The types that a text may ask for.
constexpr std::array kFieldTypes{DType::F32, DType::F64, DType::I32, DType::I64, DType::U8};

std::optional<DType> field_type(std::string_view name) {
  const auto found = std::ranges::find(kFieldTypes, name, [](DType type) { return name_of(type); });
  return found == kFieldTypes.end() ? std::nullopt : std::optional<DType>(*found);
}

class FieldText {
 public:
  explicit FieldText(std::string_view text) : text_(text) {}

  FieldSelection parse() {
    FieldSelection field;
    const std::size_t bracket = std::min(text_.find('['), text_.size());
    if (const std::size_t equals = text_.find('='); equals < bracket) {
      field.name = trimmed(text_.substr(0, equals));
      if (field.name.empty()) wrong("expected the name of a field before '='");
      at_ = equals + 1;
    }
    std::size_t end = bracket;
    if (const std::size_t colon = text_.rfind(':', bracket); bracket == text_.size() && colon != text_.npos) {
      field.dtype = field_type(trimmed(text_.substr(colon + 1)));
      if (field.dtype) end = std::max(at_, colon);
    }
    field.path = trimmed(text_.substr(at_, end - at_));
    if (field.path.empty()) wrong("expected the path of a dataset, an array or a file");
    at_ = bracket;
    if (accept('[')) axes(field);
    if (bracket < text_.size() && accept(':')) {
      field.dtype = field_type(trimmed(text_.substr(at_)));
      if (!field.dtype) wrong("expected one of the types f32, f64, i32, i64, u8");
      at_ = text_.size();
    }
    skip_spaces();
    if (bracket < text_.size() && at_ < text_.size()) wrong("expected the end of the text, or ':' and a type");
    return field;
  }

 private:
  [[noreturn]] void wrong(std::string_view expectation) const {
    fail("field", "'{}': position {}: {}", text_, at_, expectation);
  }
  static std::string trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == text.npos) return {};
    return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool accept(char c) { return accept(std::string_view(&c, 1)); }

  void axes(FieldSelection& field) {
    while (!accept(']')) {
      if (accept("...")) {
        if (field.ellipsis) wrong("a second '...', expected at most one");
        field.ellipsis = field.axes.size();
      } else {
        field.axes.push_back(axis());
      }
      if (accept(']')) return;
      if (!accept(',')) wrong("expected ',' or ']'");
    }
    if (field.axes.empty() && !field.ellipsis) wrong("expected a slice between '[' and ']', such as ':' or '0:2'");
  }

  AxisSelection axis() {
    AxisSelection axis{.begin = number()};
    if (!accept(':')) {
      if (!axis.begin) wrong("expected a slice (BEGIN:END:STEP), a number or '...'");
      axis.index = true;
      return axis;
    }
    axis.end = number();
    if (!accept(':')) return axis;
    const std::optional<std::int64_t> step = number();
    if (step && *step < 1) wrong("the step is below 1, expected at least 1");
    axis.step = step.value_or(1);
    return axis;
  }

  std::optional<std::int64_t> number() {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code == std::errc::invalid_argument) return std::nullopt;
    if (code != std::errc() || value == INT64_MIN) wrong("the number does not fit 64 bits");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string field_text(const FieldSelection& selection) {
  return selection.name.empty() ? selection.path : selection.name;
}

AxisRange resolve_axis(const AxisSelection& axis, std::int64_t size, std::size_t number, std::string_view site,
                       const std::string& name) {
  if (axis.index) {
    const std::int64_t at = *axis.begin < 0 ? *axis.begin + size : *axis.begin;
    check(at >= 0 && at < size, site, "'{}': index {} of axis {}, which has {} elements", name, *axis.begin, number,
          size);
    return {.begin = at, .count = 1, .kept = false};
  }
  const auto place = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp<std::int64_t>(*given < 0 ? *given + size : *given, 0, size);
  };
  const std::int64_t begin = place(axis.begin, 0), end = std::max(begin, place(axis.end, size));
  const std::int64_t count = end == begin ? 0 : (end - begin - 1) / axis.step + 1;
  check(count > 0 || size == 0, site, "'{}': the slice selects no element of axis {}, which has {}", name, number,
        size);
  return {.begin = begin, .count = count, .step = axis.step};
}

// Copies the part of axes `axis` and after it; `stride` has the bytes of one element of each axis.
std::byte* copy_axis(std::span<const AxisRange> ranges, std::span<const std::size_t> stride, std::size_t element,
                     const std::byte* in, std::byte* out) {
  if (ranges.empty()) {
    std::memcpy(out, in, element);
    return out + element;
  }
  const AxisRange& range = ranges.front();
  const std::byte* from = in + static_cast<std::size_t>(range.begin) * stride.front();
  if (ranges.size() == 1 && range.step == 1) {
    const std::size_t bytes = static_cast<std::size_t>(range.count) * element;
    if (bytes > 0) std::memcpy(out, from, bytes);
    return out + bytes;
  }
  for (std::int64_t i = 0; i < range.count; ++i) {
    const std::byte* one = from + static_cast<std::size_t>(i * range.step) * stride.front();
    out = copy_axis(ranges.subspan(1), stride.subspan(1), element, one, out);
  }
  return out;
}

}  // namespace

FieldSelection parse_field(std::string_view text) { return FieldText(text).parse(); }

std::vector<FieldSelection> parse_fields(const std::vector<std::string>& texts) {
  std::vector<FieldSelection> fields;
  for (const std::string& text : texts) fields.push_back(parse_field(text));
  return fields;
}

std::vector<AxisRange> resolve(const FieldSelection& selection, const Shape& whole, std::int64_t sample_axis,
                               std::string_view site) {
  const auto rank = static_cast<std::size_t>(whole.rank());
  const std::string name = field_text(selection);
  const std::vector<AxisSelection>& given = selection.axes;
  check(given.size() <= rank, site, "'{}': {} slices for shape {}, expected at most {}", name, given.size(),
        whole.str(), rank);
  std::vector<AxisSelection> axes(rank);
  const std::size_t before = std::min(selection.ellipsis.value_or(given.size()), given.size());
  const auto split = given.begin() + static_cast<std::ptrdiff_t>(before);
  std::copy(given.begin(), split, axes.begin());
  std::copy(split, given.end(), axes.end() - (given.end() - split));
  std::vector<AxisRange> ranges;
  for (std::size_t i = 0; i < rank; ++i) {
    check(static_cast<std::int64_t>(i) != sample_axis || !axes[i].index, site,
          "'{}': axis {} counts samples, expected a slice there, not a number", name, i);
    ranges.push_back(resolve_axis(axes[i], whole[static_cast<int>(i)], i, site, name));
  }
  return ranges;
}

Shape selected_shape(std::span<const AxisRange> ranges, std::int64_t sample_axis) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].kept && static_cast<std::int64_t>(i) != sample_axis) dims.push_back(ranges[i].count);
  }
  return Shape(std::move(dims));
}

void copy_selected(std::span<const AxisRange> ranges, const Shape& whole, std::size_t element, const std::byte* in,
                   std::byte* out) {
  std::vector<std::size_t> stride(ranges.size());
  std::size_t bytes = element;
  for (std::size_t i = ranges.size(); i-- > 0;) {
    stride[i] = bytes;
    bytes *= static_cast<std::size_t>(whole[static_cast<int>(i)]);
  }
  if (std::ranges::any_of(ranges, [](const AxisRange& range) { return range.count == 0; })) return;
  copy_axis(ranges, stride, element, in, out);
}

}  // namespace lockstep::data
