#include "lockstep/train/guard/suspects.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/log.h"
#include "lockstep/train/guard/known_product.h"
#include "lockstep/train/guard/untrusted_error.h"
#include "lockstep/train/prepare/guards.h"

namespace lockstep::train {

std::string name_of(const comm::Communicator& comm, int rank) {
  return fmt::format("rank {} on {}", rank, comm.topology().host(rank));
}

void Suspects::suspect(int rank, int times) {
  suspicions_.resize(static_cast<std::size_t>(comm_.size()));
  if ((suspicions_[static_cast<std::size_t>(rank)] += times) < kEnough) return;
  const KnownProduct mine = known_product();
  std::vector<std::uint64_t> answers = comm_.allgather(mine.computed), votes = comm_.allgather(mine.expected);
  votes.insert(votes.end(), answers.begin(), answers.end());
  const std::uint64_t right =
      *std::ranges::max_element(votes, {}, [&](std::uint64_t v) { return std::ranges::count(votes, v); });
  std::string wrong;
  for (int r = 0; r < comm_.size(); ++r) {
    const std::uint64_t answer = answers[static_cast<std::size_t>(r)];
    if (answer != right)
      wrong += fmt::format("{}{} computes wrongly: its hash of the known product is {:016x}, expected {:016x}",
                           wrong.empty() ? "" : "; ", name_of(comm_, r), answer, right);
  }
  if (!wrong.empty()) throw UntrustedError(fmt::format("[product] {}", wrong));
  if (comm_.is_root())
    log()->warn("product: {} is suspected again, but all ranks compute the known product correctly",
                name_of(comm_, rank));
}

}  // namespace lockstep::train
