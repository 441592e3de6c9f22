#include "lockstep/train/monitor/requests.h"

#include <atomic>

namespace lockstep::train {
namespace {

std::atomic<std::uint64_t> pending{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "signal handlers set it");

}  // namespace

void request(Request wanted) noexcept { pending.fetch_or(wanted); }
std::uint64_t requested() noexcept { return pending.load(std::memory_order_relaxed); }
void forget_requests(std::uint64_t bits) noexcept { pending.fetch_and(~bits); }

}  // namespace lockstep::train
