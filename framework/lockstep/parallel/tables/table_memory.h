// Allocations of sparse tables, whose sizes differ from rank to rank: if one rank cannot have its memory, all ranks
// throw the same Error, and none waits for that rank in a later call.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"

namespace lockstep::parallel {

// The number of an allocation at the fault point "tables.allocate", whose action `corrupt` makes the allocation fail.
enum class TableMemory : std::uint8_t { Rows, Changes, HotRows };

inline constexpr std::string_view kFewerRows =
    "shard the tables over more ranks or hosts (--shard-tables), or take fewer rows (--hash-ids, --vocabulary), "
    "shorter rows (--dim) or a rule with fewer states (--table-optimizer rowwise-adagrad or sgd)";

// Calls allocate(), which may throw std::bad_alloc. Collective; throws AgreedError with rank, host and bytes on all
// ranks if it fails on any. `use`: of the memory, in the message, as are the `remedies`. An allocate() that
// communicates by `comm` begins with an agreement, as NodeMemory::common() does.
template <class Allocate>
void allocate_together(const comm::Communicator& comm, TableMemory kind, std::string_view use, std::size_t bytes,
                       const Allocate& allocate, std::string_view remedies = kFewerRows) {
  comm::collectively(comm, [&] {
    try {
      if (fault_wanted("tables.allocate", static_cast<std::int64_t>(kind))) throw std::bad_alloc();
      allocate();
    } catch (const std::bad_alloc&) {
      fail("tables",
           "{} bytes ({} MiB) for {} could not be allocated; each rank needs as much: {}, or raise a limit "
           "(`ulimit -v`)",
           bytes, (bytes + (1 << 20) - 1) >> 20, use, remedies);
    }
  });
}

}  // namespace lockstep::parallel
