#include "lockstep/data/combined_datasets.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/file_source.h"

namespace lockstep::data {
namespace {

std::string fields_text(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += text.empty() ? "" : ", ";
    text += formatted("{} {} {}", field.name, field.shape.str(), name_of(field.dtype));
  }
  return text;
}

// A number in [0, 1) with 53 bits, of (seed, index).
double split_number(std::uint64_t seed, std::int64_t index) {
  const Philox word = philox(mix(seed, hash_name("split")), static_cast<std::uint64_t>(index), 0);
  const std::uint64_t bits = std::uint64_t{word[0]} << 32 | word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

ConcatDataset::ConcatDataset(std::vector<std::unique_ptr<Dataset>> parts) : parts_(std::move(parts)), first_{0} {
  constexpr std::string_view kConcat = "concatenation";
  check(!parts_.empty(), kConcat, "there are no data sets, expected at least one");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    check(parts_[i] != nullptr, kConcat, "data set {} is null", i);
    check(parts_[i]->fields() == fields(), kConcat, "{} has the fields {}, but {} has {}; expected equal fields",
          parts_[i]->describe(), fields_text(parts_[i]->fields()), parts_.front()->describe(), fields_text(fields()));
    check(parts_[i]->classes() == classes(), kConcat, "{} has {} classes, but {} has {}; expected equal numbers",
          parts_[i]->describe(), parts_[i]->classes(), parts_.front()->describe(), classes());
    first_.push_back(first_.back() + parts_[i]->size());
  }
}

std::string ConcatDataset::describe() const {
  if (parts_.size() == 1) return parts_.front()->describe();
  return formatted("{} samples of {} sets: {}, ...", size(), parts_.size(), parts_.front()->describe());
}

std::size_t ConcatDataset::part_of_sample(std::int64_t index) const {
  check_index(index);
  const auto next = std::ranges::upper_bound(first_, index);  // also skips parts without samples
  return static_cast<std::size_t>(next - first_.begin()) - 1;
}

std::string ConcatDataset::locate(std::int64_t index) const {
  const std::size_t part = part_of_sample(index);
  return parts_[part]->locate(index - first_[part]);
}

std::int32_t ConcatDataset::label(std::int64_t index) const {
  const std::size_t part = part_of_sample(index);
  return parts_[part]->label(index - first_[part]);
}

bool ConcatDataset::is_random() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->is_random(); });
}

void ConcatDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  const std::size_t part = part_of_sample(index);
  parts_[part]->read(index - first_[part], out);
}

void ConcatDataset::read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const {
  const std::size_t part = part_of_sample(index);
  parts_[part]->read_random(index - first_[part], key, out);
}

std::vector<std::int64_t> ConcatDataset::sizes() const {
  std::vector<std::int64_t> sizes;
  for (const auto& part : parts_) sizes.push_back(part->size());
  return sizes;
}

std::vector<std::vector<std::int64_t>> split_by_fraction(std::int64_t size, const std::vector<double>& fractions,
                                                         std::uint64_t seed) {
  check(size >= 0, "split", "{} samples, expected at least 0", size);
  check(!fractions.empty(), "split", "there are no fractions, expected at least one");
  std::vector<double> end;
  for (const double fraction : fractions) {
    check(fraction > 0 && fraction <= 1, "split", "fraction {}, expected more than 0 and at most 1", fraction);
    end.push_back((end.empty() ? 0.0 : end.back()) + fraction);
  }
  constexpr double kRounding = 1e-9;  // 0.7 + 0.2 + 0.1 is not exactly 1
  check(end.back() <= 1 + kRounding, "split", "the fractions sum to {}, expected at most 1", end.back());
  if (end.back() >= 1 - kRounding) end.back() = 1;
  std::vector<std::vector<std::int64_t>> parts(fractions.size());
  for (std::int64_t i = 0; i < size; ++i) {
    const auto part = std::ranges::upper_bound(end, split_number(seed, i));
    if (part != end.end()) parts[static_cast<std::size_t>(part - end.begin())].push_back(i);
  }
  return parts;
}

std::vector<std::unique_ptr<Dataset>> split_dataset(std::unique_ptr<Dataset> whole,
                                                    const std::vector<double>& fractions, std::uint64_t seed) {
  const std::shared_ptr<const Dataset> shared = std::move(whole);
  check(shared != nullptr, "split", "the data set is null, expected one to divide");
  std::vector<std::unique_ptr<Dataset>> parts;
  for (std::vector<std::int64_t>& indices : split_by_fraction(shared->size(), fractions, seed)) {
    check(!indices.empty(), "split", "{}: a part of fraction {} has no sample", shared->describe(),
          fractions[parts.size()]);
    parts.push_back(std::make_unique<SubsetDataset>(shared, std::move(indices)));
  }
  return parts;
}

namespace {

// Reads one value per line; empty lines and what follows a '#' are skipped.
template <class T>
std::vector<T> read_lines(const std::filesystem::path& path, std::string_view expected, bool (*accepts)(T)) {
  FileSource file(path);
  std::string text;
  std::vector<std::uint8_t> piece(std::size_t{1} << 16);
  for (std::size_t got = file.read_some(piece); got > 0; got = file.read_some(piece))
    text.append(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
  std::vector<T> values;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    T value{};
    const auto [stop, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    check(code == std::errc() && stop == line.data() + line.size() && accepts(value), file.name(),
          "line {}: '{}', expected {}", number, line.substr(0, 40), expected);
    values.push_back(value);
  }
  return values;
}

}  // namespace

std::vector<std::int64_t> read_indices(const std::filesystem::path& path) {
  return read_lines<std::int64_t>(path, "the index of a sample, from 0 on",
                                  [](std::int64_t index) { return index >= 0; });
}

std::vector<double> read_numbers(const std::filesystem::path& path) {
  return read_lines<double>(path, "a finite number", [](double value) { return std::isfinite(value); });
}

}  // namespace lockstep::data
