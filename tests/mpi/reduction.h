// For the tests of the reduction: numbers whose sum depends on the order of additions, the canonical tree written down
// a second time, and ways to group the ranks of the test into domains, though they are all on one node.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "lockstep/core/backoff.h"
#include "lockstep/core/bfloat16.h"
#include "lockstep/core/dtype.h"
#include "lockstep/core/float16.h"
#include "lockstep/core/random.h"
#include "lockstep/parallel/tree/domains.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {

// Of very different sizes, all within the range of binary16 though nine are added.
inline double number(std::int64_t shard, std::int64_t element) {
  const std::uint64_t bits = mix(mix(7, static_cast<std::uint64_t>(shard)), static_cast<std::uint64_t>(element));
  const double unit = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
  return unit * static_cast<double>(1 << (bits & 15U)) * 0x1p-6;
}

template <class T>
T on_the_wire(parallel::Wire wire, T value) {
  if (std::is_same_v<T, double> || wire == parallel::Wire::Exact) return value;
  const auto narrow = static_cast<float>(value);
  return static_cast<T>(wire == parallel::Wire::BF16 ? static_cast<float>(BFloat16(narrow))
                                                     : static_cast<float>(Float16(narrow)));
}

// The sum that node (level, index) of the tree over `shards` sends up its edge, by recursion from the root.
template <class T, class Shard>
T tree_value(std::int64_t shards, parallel::Wire wire, int level, std::int64_t index, const Shard& shard) {
  if (level == 0) return on_the_wire(wire, static_cast<T>(shard(index)));
  const T left = tree_value<T>(shards, wire, level - 1, 2 * index, shard);
  if (((2 * index + 1) << (level - 1)) >= shards) return left;
  return on_the_wire(wire, left + tree_value<T>(shards, wire, level - 1, 2 * index + 1, shard));
}

template <class T, class Shard>
T tree_sum_of(std::int64_t shards, parallel::Wire wire, const Shard& shard) {
  int levels = 0;
  while ((std::int64_t{1} << levels) < shards) ++levels;
  return tree_value<T>(shards, wire, levels, 0, shard);
}

// Of number(), elements [shift, shift + n). Each is computed once, as they do not depend on how ranks are grouped.
template <class T>
const std::vector<T>& expected_sums(std::int64_t shards, parallel::Wire wire, std::int64_t shift, std::int64_t n) {
  static std::map<std::tuple<std::int64_t, parallel::Wire, std::int64_t, std::int64_t>, std::vector<T>> known;
  const auto [entry, is_new] = known.try_emplace({shards, wire, shift, n});
  std::vector<T>& sums = entry->second;
  for (std::int64_t i = 0; is_new && i < n; ++i)
    sums.push_back(tree_sum_of<T>(shards, wire, [&](std::int64_t shard) { return number(shard, shift + i); }));
  return sums;
}

inline parallel::WorldLayout layout(std::int64_t shards) { return {world().rank(), world().size(), shards}; }

// 0 (a shard per rank), and numbers of shards from one per rank on that leave ranks with one, some and uneven parts.
inline std::vector<std::int64_t> shard_counts() {
  const std::int64_t size = world().size();
  std::vector<std::int64_t> counts{0, size + 1, 9, 3 * size};
  if (size > 1) counts.push_back(size);
  return counts;
}

struct Grouping {
  std::string name;
  parallel::Domains domains;
};

// Rank r is in domain domain_of(r); those are numbered from 0 without gaps.
template <class DomainOf>
Grouping grouping(std::string name, const DomainOf& domain_of) {
  parallel::Domains domains{.rank = world().rank(), .domain_of = {}, .members = {}};
  for (int r = 0; r < world().size(); ++r) {
    const auto d = static_cast<std::size_t>(domain_of(r));
    domains.domain_of.push_back(static_cast<int>(d));
    domains.members.resize(std::max(domains.members.size(), d + 1));
    domains.members[d].push_back(r);
  }
  return {std::move(name), std::move(domains)};
}

inline Grouping one_domain() {
  return grouping("one domain", [](int) { return 0; });
}

// Every way that ranks of several nodes may lie: alone, all together, in parts of equal and of uneven size, in turn.
inline std::vector<Grouping> groupings() {
  const int size = world().size();
  std::vector<Grouping> all{one_domain()};
  if (size == 1) return all;
  all.push_back(grouping("single ranks", [](int r) { return r; }));
  if (size == 2) return all;
  all.push_back(grouping("1 and the others", [](int r) { return r > 0 ? 1 : 0; }));
  all.push_back(grouping("the others and 1", [&](int r) { return r == size - 1 ? 1 : 0; }));
  all.push_back(grouping("in turn", [](int r) { return r % 2; }));
  if (size > 3) all.push_back(grouping("halves", [&](int r) { return 2 * r / size; }));
  if (size > 4) all.push_back(grouping("three in turn", [](int r) { return r % 3; }));
  return all;
}

// body(T{}) with the type of the elements.
template <class Body>
void with_type(DType dtype, const Body& body) {
  dtype == DType::F64 ? body(double{}) : body(float{});
}

// Until `done`, driving by `progress`.
template <class Progress, class Done>
void drive(const Progress& progress, const Done& done) {
  for (Backoff wait; !done();) {
    if (progress()) {
      wait = {};
    } else {
      wait.pause();
    }
  }
}

template <class T>
void expect_equal(std::span<const T> got, std::span<const T> expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = got.size(); i-- > 0;) {
    if (got[i] == expected[i]) continue;
    ++wrong;
    first = i;
  }
  EXPECT_EQ(wrong, 0u) << what << ": of " << got.size() << " elements, the first at " << first << ", " << got[first]
                       << " instead of " << expected[first];
}

}  // namespace lockstep::test
