#include "data/datasets/click_bags.h"

#include <algorithm>
#include <charconv>

#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kBagsSite = "options";
constexpr std::int64_t kMostPlaces = 1 << 16;

// Takes one word behind the name of a field into the bag.
void read_word(std::string_view word, ClickBag& bag) {
  constexpr std::string_view kCounts = "counts=", kOffsets = "offsets=";
  if (word == "sum" || word == "mean" || word == "max") {
    bag.join = word == "sum" ? BagJoin::Sum : word == "mean" ? BagJoin::Mean : BagJoin::Max;
    return;
  }
  if (word.starts_with(kCounts) && word.size() > kCounts.size()) {
    bag.counts = word.substr(kCounts.size());
    return;
  }
  if (word.starts_with(kOffsets) && word.size() > kOffsets.size()) {
    bag.offsets = word.substr(kOffsets.size());
    return;
  }
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), bag.places);
  check(
      code == std::errc() && end == word.data() + word.size() && bag.places >= 1 && bag.places <= kMostPlaces,
      kBagsSite,
      "--bags has '{}' behind the field '{}', expected sum, mean or max, a number of ids from 1 to {}, counts=NAME or "
      "offsets=NAME",
      word, bag.field, kMostPlaces);
}

}  // namespace

std::vector<ClickBag> parse_bags(std::string_view text) {
  std::vector<ClickBag> bags;
  if (text.empty()) return bags;
  for (const std::string& part : split_names("bags", text)) {
    ClickBag bag;
    std::string_view rest = part;
    bag.field = rest.substr(0, rest.find(':'));
    check(!bag.field.empty(), kBagsSite, "--bags has '{}' without a field, expected FIELD:mean", part);
    check(find_bag(bags, bag.field) == nullptr, kBagsSite, "--bags has the field '{}' twice, expected it once",
          bag.field);
    while (rest.find(':') != std::string_view::npos) {
      rest.remove_prefix(rest.find(':') + 1);
      read_word(rest.substr(0, rest.find(':')), bag);
    }
    check(bag.counts.empty() || bag.offsets.empty(), kBagsSite,
          "--bags has counts={} and offsets={} for the field '{}', expected one of the two", bag.counts, bag.offsets,
          bag.field);
    bags.push_back(std::move(bag));
  }
  return bags;
}

const ClickBag* find_bag(const std::vector<ClickBag>& bags, std::string_view field) {
  const auto found = std::ranges::find(bags, field, &ClickBag::field);
  return found == bags.end() ? nullptr : &*found;
}

void check_bags(const std::vector<ClickBag>& bags, const std::vector<std::string>& fields) {
  for (const ClickBag& bag : bags)
    check(std::ranges::find(fields, bag.field) != fields.end(), kBagsSite,
          "--bags names the field '{}', expected one of the fields of ids: {}", bag.field, joined(fields, ", "));
}

std::vector<std::int64_t> places_of(const std::vector<ClickBag>& bags, const std::vector<std::string>& fields) {
  std::vector<std::int64_t> places;
  for (const std::string& field : fields) {
    const ClickBag* const bag = find_bag(bags, field);
    places.push_back(bag == nullptr ? 0 : bag->places);
  }
  return places;
}

std::int64_t columns_of(const std::vector<std::int64_t>& places) {
  std::int64_t columns = 0;
  for (const std::int64_t count : places) columns += count == 0 ? 1 : count;
  return columns;
}

}  // namespace lockstep::datasets
