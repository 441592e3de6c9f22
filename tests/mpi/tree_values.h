// For the tests of the public allreduce: each rank's numbers, what the reduction tree makes of them by definition, and
// domains made by hand.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "lockstep/comm/combine.h"
#include "lockstep/parallel/tree/domains.h"

namespace lockstep::test {

// Element i of rank r: of all magnitudes, so that another order of addition gives other bits.
template <class T>
T value_of(int rank, std::int64_t i) {
  std::uint64_t x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL +
                    static_cast<std::uint64_t>(rank + 1) * 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 32;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    const double mantissa = static_cast<double>(x % 4001) / 2000 - 1;
    return static_cast<T>(static_cast<float>(std::ldexp(mantissa, static_cast<int>(x >> 40) % 9 - 4)));
  }
}

// Node (level, index) of the tree over `size` ranks, by definition.
template <comm::ReduceOp op, class T>
T node_value(int size, int level, int index, std::int64_t i) {
  if (level == 0) return value_of<T>(index, i);
  const T left = node_value<op, T>(size, level - 1, 2 * index, i);
  if (((2 * index + 1) << (level - 1)) >= size) return left;
  return comm::combined<op>(left, node_value<op, T>(size, level - 1, 2 * index + 1, i));
}

template <class T>
T expected(comm::ReduceOp op, int size, std::int64_t i) {
  int levels = 0;
  while ((1 << levels) < size) ++levels;
  switch (op) {
    case comm::ReduceOp::Sum:
      return node_value<comm::ReduceOp::Sum, T>(size, levels, 0, i);
    case comm::ReduceOp::Product:
      return node_value<comm::ReduceOp::Product, T>(size, levels, 0, i);
    case comm::ReduceOp::Min:
      return node_value<comm::ReduceOp::Min, T>(size, levels, 0, i);
    default:
      return node_value<comm::ReduceOp::Max, T>(size, levels, 0, i);
  }
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Domains of `per` ranks each, ranks dealt out in turn or one block after the other; the last may have fewer.
inline parallel::Domains domains_of(const comm::Communicator& comm, int per, bool dealt) {
  const int size = comm.size(), count = (size + per - 1) / per;
  parallel::Domains d{.rank = comm.rank()};
  d.members.resize(static_cast<std::size_t>(count));
  for (int r = 0; r < size; ++r) {
    d.domain_of.push_back(dealt ? r % count : r / per);
    d.members[static_cast<std::size_t>(d.domain_of.back())].push_back(r);
  }
  return d;
}

}  // namespace lockstep::test
