// Fields of ids that are bags: a sample has any number of ids of such a field, none among them. A sample has places for
// the largest bag; kMissingId stands in places without an id. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

enum class BagJoin : std::uint8_t { Sum, Mean, Max };

struct ClickBag {
  std::string field{};
  BagJoin join = BagJoin::Mean;  // of the rows of a bag
  std::int64_t places = 16;      // ids that a bag of any length has at most
  std::string counts{};          // of arrays: the array with the number of ids in use; empty: those that are not -1
  // Of HDF5: the array of the places at which bags begin in the array of ids, and of the last one's end.
  std::string offsets{};
};

// Reads "genres,tags:sum,items:max:50,seen:mean:counts=n": a field, how its rows are joined, the places of its bags in
// text files and of bags of any length, and the array of counts; "genres:offsets=o" has one of offsets. Throws Error at
// site "options".
std::vector<ClickBag> parse_bags(std::string_view text);

// Returns the bag of a field; null: the field has one id.
const ClickBag* find_bag(const std::vector<ClickBag>& bags, std::string_view field);

// Throws Error at site "options" for a bag of a field that is none of these.
void check_bags(const std::vector<ClickBag>& bags, const std::vector<std::string>& fields);

// Returns the places of each of these fields: 0 for a field with one id.
std::vector<std::int64_t> places_of(const std::vector<ClickBag>& bags, const std::vector<std::string>& fields);

// Returns the number of columns that the ids of a sample take.
std::int64_t columns_of(const std::vector<std::int64_t>& places);

}  // namespace lockstep::datasets
