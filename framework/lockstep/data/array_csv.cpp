// Arrays of samples as comma-separated values.
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "lockstep/data/array_form.h"
#include "lockstep/data/class_predictions.h"

namespace lockstep::data {
namespace {

// A cell with a comma, a quote or a line end needs quotes (RFC 4180).
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

class CsvForm : public ArrayFile::Form {
 public:
  using Form::Form;

  void begin(const std::vector<Field>& arrays, std::int64_t /*samples*/, const ArrayNotes& notes) override {
    notes_ = notes;
    text_ = notes.file ? "index,file" : "index";
    for (const Field& array : arrays) {
      for (std::int64_t i = 0; i < array.shape.elements(); ++i)
        fmt::format_to(std::back_inserter(text_), ",{}", cell(column(array, i)));
      if (has_name(array.name, array.shape, array.dtype)) text_ += ",name";
    }
    text_ += '\n';
    write();
  }
  void append(std::span<const NamedTensor> part, std::int64_t first) override {
    const std::int64_t samples = part.front().tensor.shape()[0];
    for (std::int64_t s = 0; s < samples; ++s) {
      fmt::format_to(std::back_inserter(text_), "{}", first + s);
      if (notes_.file) fmt::format_to(std::back_inserter(text_), ",{}", cell(notes_.file(first + s)));
      for (const auto& [name, tensor] : part) {
        add(tensor, s);
        if (has_name(name, tensor.shape().tail(), tensor.dtype())) add_name(tensor, s);
      }
      text_ += '\n';
      if (text_.size() > kBlock) write();
    }
    write();
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  // "_0_3" for the element [0, 3]; nothing for that of a number.
  static std::string place(const Shape& shape, std::int64_t element) {
    std::string text;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      text.insert(0, fmt::format("_{}", element % shape[axis]));
      element /= shape[axis];
    }
    return text;
  }
  bool has_name(std::string_view array, const Shape& shape, DType type) const {
    return array == kClassArray && shape.rank() == 0 && type == DType::I32 && !notes_.class_names.empty();
  }
  // The column of an element; of "probability" with the name of the class that the first axis is about.
  std::string column(const Field& array, std::int64_t element) const {
    const Shape& shape = array.shape;
    const bool named = array.name == "probability" && shape.rank() > 0 && !notes_.class_names.empty() &&
                       shape[0] == std::ssize(notes_.class_names);
    if (!named) return array.name + place(shape, element);
    const Shape within = shape.tail();
    const std::int64_t label = element / within.elements();
    return fmt::format("{}_{}{}", array.name, notes_.class_names[static_cast<std::size_t>(label)],
                       place(within, element % within.elements()));
  }
  void add_name(const Tensor& classes, std::int64_t sample) {
    const std::int32_t label = classes.data<std::int32_t>()[static_cast<std::size_t>(sample)];
    check(label >= 0 && label < std::ssize(notes_.class_names), kArrayFileSite, "{}: class {}, expected 0 to {}",
          path().string(), label, notes_.class_names.size() - 1);
    fmt::format_to(std::back_inserter(text_), ",{}", cell(notes_.class_names[static_cast<std::size_t>(label)]));
  }
  void add(const Tensor& tensor, std::int64_t sample) {
    switch (tensor.dtype()) {
      case DType::F64:
        return add_values<double>(tensor, sample);
      case DType::I32:
        return add_values<std::int32_t>(tensor, sample);
      case DType::I64:
        return add_values<std::int64_t>(tensor, sample);
      case DType::U8:
        return add_values<std::uint8_t>(tensor, sample);
      default:
        return add_values<float>(tensor, sample);
    }
  }
  // A floating-point number gets the fewest digits that give its bits back.
  template <class T>
  void add_values(const Tensor& tensor, std::int64_t sample) {
    const auto count = static_cast<std::size_t>(tensor.shape().tail().elements());
    for (const T value : tensor.data<T>().subspan(static_cast<std::size_t>(sample) * count, count))
      fmt::format_to(std::back_inserter(text_), ",{}", value);
  }
  void write() {
    file().write(std::as_bytes(std::span(text_)));
    text_.clear();
  }

  ArrayNotes notes_;
  std::string text_;
};

}  // namespace

std::unique_ptr<ArrayFile::Form> make_csv_form(const std::filesystem::path& path) {
  return std::make_unique<CsvForm>(path);
}

}  // namespace lockstep::data
