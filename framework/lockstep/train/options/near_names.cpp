#include "lockstep/train/options/near_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace lockstep::train {
namespace {

// Returns the optimal string alignment distance: the number of letters to insert, remove, replace, or swap with a
// neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string normal_form(std::string_view name) {
  std::string form(name);
  std::ranges::transform(form, form.begin(), [](char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return form;
}

std::string nearest_name(std::string_view given, std::span<const std::string> names) {
  if (given.empty() || given.size() > kLongestName) return {};
  const std::string wanted = normal_form(given);
  std::string nearest;
  std::size_t least = std::max<std::size_t>(1, given.size() / 4) + 1;
  for (const std::string& candidate : names) {
    if (const std::size_t apart = distance(wanted, normal_form(candidate)); apart < least) {
      least = apart;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace lockstep::train
