// The paths on which ranks sum data, and their names in options, logs and errors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::parallel {

// Shared: in the memory of a node, for ranks of one node. Hierarchical: in memory within nodes, by messages between
// nodes. Messages: between all ranks. Mpi: collectives of MPI. Auto: the first of these that is possible, never Mpi.
enum class AllreducePath : std::uint8_t { Auto, Shared, Hierarchical, Messages, Mpi };

// The name of each path, in the order of the values.
inline constexpr std::array<std::string_view, 5> kAllreducePathNames{"auto", "shared", "hierarchical", "messages",
                                                                     "mpi"};
constexpr std::string_view name_of(AllreducePath path) { return kAllreducePathNames[static_cast<std::size_t>(path)]; }

}  // namespace lockstep::parallel
