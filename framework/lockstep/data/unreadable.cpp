#include "lockstep/data/unreadable.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/printable.h"

namespace lockstep::data {
namespace {
constexpr std::string_view kReplace = "unreadable samples";
}

ReplaceUnreadable::ReplaceUnreadable(std::shared_ptr<const Dataset> whole, ReplaceOptions options)
    : DatasetView(std::move(whole), kReplace), options_(options) {
  check(options.most_in_a_row > 0 && options.most_warnings > 0, kReplace,
        "at most {} in a row and {} warnings, expected at least 1 of each", options.most_in_a_row,
        options.most_warnings);
}

void ReplaceUnreadable::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  read_next(index, [&](std::int64_t i) { whole().read(i, out); });
}

void ReplaceUnreadable::read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const {
  check_index(index);
  read_next(index, [&](std::int64_t i) { whole().read_random(i, key, out); });
}

template <class Read>
void ReplaceUnreadable::read_next(std::int64_t index, const Read& read) const {
  const std::int64_t most = std::min(options_.most_in_a_row, size());
  for (std::int64_t tries = 1;; ++tries) {
    const std::int64_t at = (index + tries - 1) % size();
    try {
      read(at);
      break;
    } catch (const Error& error) {
      if (has_own_class(error)) throw;
      note(at, error.what());
      check(tries < most, kReplace, "{} samples in a row cannot be read, from sample {} on; the last one: {}", tries,
            index, error.what());
      if (tries > 1) continue;
      const std::scoped_lock lock(mutex_);
      ++replaced_;
    }
  }
}

void ReplaceUnreadable::note(std::int64_t index, const std::string& message) const {
  std::int64_t known = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (!unreadable_.insert(index).second) return;
    known = static_cast<std::int64_t>(unreadable_.size());
  }
  if (known > options_.most_warnings) return;
  log()->warn("[{}] sample {} is replaced by the next one: {}{}", kReplace, index, printable(message),
              known == options_.most_warnings ? "; further ones are only counted" : "");
}

std::int64_t ReplaceUnreadable::replaced() const {
  const std::scoped_lock lock(mutex_);
  return replaced_;
}

std::vector<std::int64_t> ReplaceUnreadable::unreadable() const {
  const std::scoped_lock lock(mutex_);
  return {unreadable_.begin(), unreadable_.end()};
}

}  // namespace lockstep::data
