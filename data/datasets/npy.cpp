#include "data/datasets/npy.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/data/npy_format.h"

namespace lockstep::datasets {
namespace {

constexpr std::int64_t kMostHeader = 1 << 16;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// The header's text: a Python dict of three entries, in any order.
class HeaderText {
 public:
  HeaderText(const std::string& file, std::int64_t offset, std::string_view text)
      : file_(file), offset_(offset), text_(text) {}

  void read(NpyArray& array) {
    int found = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        dtype(array);
        found |= 1;
      } else if (key == "fortran_order") {
        column_major_ = boolean();
        found |= 2;
      } else if (key == "shape") {
        array.shape = shape();
        found |= 4;
      } else {
        wrong(formatted("key '{}', expected descr, fortran_order and shape", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) wrong("text after the dict");
    if (found != 7) wrong("expected the keys descr, fortran_order and shape");
    if (column_major_ && array.shape.size() > 1)
      wrong("an array in Fortran order, expected C order: save numpy.ascontiguousarray(array)");
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail(file_, "header: offset {}: {}", offset_ + static_cast<std::int64_t>(at_), what);
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) wrong(formatted("expected '{}'", c));
  }
  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect(quote);
    const std::size_t begin = at_, end = text_.find(quote, at_);
    if (end == text_.npos) wrong("a text without its end");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  bool boolean() {
    skip_spaces();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    wrong("expected True or False");
  }
  std::int64_t integer() {
    skip_spaces();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) wrong("expected a size of at least 0, below 2^63");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(integer());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }
  void dtype(NpyArray& array) {
    if (accept('[')) wrong("a structured dtype, expected plain numbers");
    const std::size_t begin = at_;
    const std::string_view text = quoted();
    const std::string_view kinds = "uifb", sizes = "1248";
    if (text.size() != 3 || std::string_view("<>|=").find(text[0]) == text.npos || kinds.find(text[1]) == text.npos ||
        sizes.find(text[2]) == text.npos) {
      at_ = begin;
      wrong(formatted("dtype '{}', expected numbers such as '|u1' or '<i8'", text));
    }
    array.big_endian = text[0] == '>';
    array.kind = text[1];
    array.item_bytes = text[2] - '0';
  }

  const std::string& file_;
  std::int64_t offset_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool column_major_ = false;
};

std::string dtype_name(const NpyArray& array) {
  return formatted("{}{}",
                   array.kind == 'u'   ? "uint"
                   : array.kind == 'i' ? "int"
                   : array.kind == 'f' ? "float"
                                       : "bool",
                   array.kind == 'b' ? "" : formatted("{}", 8 * array.item_bytes));
}

std::int64_t label_at(const NpyArray& labels, std::size_t index) {
  const auto width = static_cast<std::size_t>(labels.item_bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t at = labels.big_endian ? i : width - 1 - i;
    value = value << 8 | labels.bytes[index * width + at];
  }
  if (labels.kind == 'u') return value > static_cast<std::uint64_t>(kMost) ? kMost : static_cast<std::int64_t>(value);
  const int unused = 64 - 8 * static_cast<int>(width);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

std::vector<std::int32_t> labels_of(const NpyArray& array) {
  constexpr std::int64_t kMostClasses = 1 << 24;
  check(array.kind == 'u' || array.kind == 'i', array.name, "labels are {}, expected integers", dtype_name(array));
  check(array.shape.size() == 1, array.name, "labels have shape ({}), expected (samples)", joined(array.shape, ", "));
  check(array.shape[0] > 0, array.name, "no labels, expected at least 1");
  std::vector<std::int32_t> labels(static_cast<std::size_t>(array.shape[0]));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = label_at(array, i);
    check(label >= 0 && label < kMostClasses, array.name, "record {} has label {}, expected 0 to {}", i, label,
          kMostClasses - 1);
    labels[i] = static_cast<std::int32_t>(label);
  }
  return labels;
}

// The image's shape: channels, rows, columns.
Shape image_shape(const NpyArray& array) {
  const std::vector<std::int64_t>& s = array.shape;
  check(array.kind == 'u' && array.item_bytes == 1, array.name, "images are {}, expected uint8", dtype_name(array));
  check(s.size() == 3 || s.size() == 4, array.name,
        "images have shape ({}), expected (samples, rows, columns) or (samples, channels, rows, columns)",
        joined(s, ", "));
  check(std::ranges::all_of(s, [](std::int64_t size) { return size > 0; }), array.name,
        "images have shape ({}), expected at least 1 of each", joined(s, ", "));
  check(s.size() == 3 || s[3] > 4 || s[1] <= 4, array.name,
        "images have shape ({}), which looks like channels last; expected (samples, channels, rows, columns)",
        joined(s, ", "));
  return s.size() == 3 ? Shape{1, s[1], s[2]} : Shape{s[1], s[2], s[3]};
}

NpyArray find_array(const std::filesystem::path& dir, const std::string& split, const std::string& name) {
  const auto archive = dir / (split + ".npz"), path = dir / formatted("{}_{}.npy", split, name);
  const bool has_archive = std::filesystem::exists(archive), has_file = std::filesystem::exists(path);
  check(!has_archive || !has_file, "npy", "{} has both {} and {}, expected one of the two: remove or rename the other",
        dir.string(), archive.filename().string(), path.filename().string());
  if (has_archive) return read_npz(archive, name);
  check(has_file, "npy", "no {} and no {}.npz in {}", path.filename().string(), split, dir.string());
  data::FileSource file(path);
  return read_npy(file);
}

}  // namespace

NpyArray read_npy_header(data::FileSource& file) {
  const std::vector<std::uint8_t> start = file.read(8, "a NumPy header");
  check(std::equal(data::kNpyMagic.begin(), data::kNpyMagic.end(), start.begin(),
                   [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }),
        file.name(), "offset 0: not a NumPy array, expected the bytes \\x93NUMPY");
  const int major = start[6];
  check(major >= 1 && major <= 3, file.name(), "offset 6: format version {}, expected 1 to 3", major);
  std::int64_t length = 0;
  int shift = 0;
  for (const std::uint8_t byte : file.read(major == 1 ? 2 : 4, "the length of a NumPy header")) {
    length |= std::int64_t{byte} << shift;
    shift += 8;
  }
  check(length <= kMostHeader, file.name(), "offset 8: a header of {} bytes, expected at most {}", length, kMostHeader);
  const std::int64_t offset = file.offset();
  const std::vector<std::uint8_t> text = file.read(length, "a NumPy header");
  NpyArray array{.name = file.name()};
  HeaderText(array.name, offset, {reinterpret_cast<const char*>(text.data()), text.size()}).read(array);
  return array;
}

std::string describe_npy(const NpyArray& array) {
  return formatted("an array ({}) of {}", joined(array.shape, ", "), dtype_name(array));
}

std::int64_t npy_bytes(const NpyArray& array) {
  std::int64_t bytes = array.item_bytes;
  for (const std::int64_t size : array.shape) {
    check(size == 0 || bytes <= kMost / size, array.name, "header: {} is more than a file can hold",
          describe_npy(array));
    bytes *= size;
  }
  return bytes;
}

NpyArray read_npy(data::FileSource& file) {
  NpyArray array = read_npy_header(file);
  const std::string what = describe_npy(array);
  array.bytes = file.read(npy_bytes(array), what);
  file.expect_end(what);
  return array;
}

std::unique_ptr<data::ImageDataset> read_npy_split(const std::filesystem::path& dir, data::Split split) {
  const std::string name = split == data::Split::Train ? "train" : "eval";
  const std::string other = split == data::Split::Train ? "eval" : "train";
  data::Images images{.description = "npy " + name, .labels = labels_of(find_array(dir, name, "labels"))};
  NpyArray pixels = find_array(dir, name, "images");
  images.shape = image_shape(pixels);
  check(pixels.shape[0] == std::ssize(images.labels), pixels.name, "{} images, but {} labels; expected equal numbers",
        pixels.shape[0], images.labels.size());
  images.pixels = std::move(pixels.bytes);
  // Classes are counted over both splits: a split may have no sample of some class.
  std::int32_t last = std::ranges::max(images.labels);
  for (const std::int32_t label : labels_of(find_array(dir, other, "labels"))) last = std::max(last, label);
  images.classes = std::int64_t{last} + 1;
  return std::make_unique<data::ImageDataset>(std::move(images));
}

data::DatasetEntry npy_entry() {
  return {.name = "npy",
          .description = "your own images and labels in NumPy's .npy or .npz files, in --data-dir",
          .needs_dir = true,
          .open = [](const data::DatasetOptions& options, data::Split split) {
            return read_npy_split(options.dir, split);
          }};
}

}  // namespace lockstep::datasets
