#include "lockstep/launch/slurm_nodes.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "lockstep/core/error.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "slurm";
constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostDigits = 9;

std::string to_width(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits > text.size() ? digits - text.size() : 0, '0') + text;
}

// One list; what stands in brackets may follow another: r[1-2]n[1-4].
class NodeListReader {
 public:
  NodeListReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  std::vector<std::string> names() {
    std::vector<std::string> all;
    do {
      const std::size_t first = at_;
      std::vector<std::string> some = entry();
      check(all.size() + some.size() <= kMostHosts, kSite, "{}, column {}: more than {} hosts, expected fewer", origin_,
            first + 1, kMostHosts);
      for (const std::string& name : some) check_host_name(kSite, formatted("{}, column {}", origin_, first + 1), name);
      std::ranges::move(some, std::back_inserter(all));
    } while (take(','));
    check(at_ == text_.size(), kSite, "{}, column {}: '{}', expected a comma or the end of the list", origin_, at_ + 1,
          text_.substr(at_, 20));
    return all;
  }

 private:
  std::vector<std::string> entry() {
    std::vector<std::string> names{""};
    for (;;) {
      const std::size_t end = std::min(text_.find_first_of(",[]", at_), text_.size());
      for (std::string& name : names) name += text_.substr(at_, end - at_);
      at_ = end;
      if (!take('[')) return names;
      names = product(names, numbers());
    }
  }

  std::vector<std::string> product(const std::vector<std::string>& left, const std::vector<std::string>& right) const {
    check(left.size() * right.size() <= kMostHosts, kSite, "{}, column {}: more than {} hosts, expected fewer", origin_,
          at_, kMostHosts);
    std::vector<std::string> all;
    for (const std::string& a : left) {
      for (const std::string& b : right) all.push_back(a + b);
    }
    return all;
  }

  std::vector<std::string> numbers() {  // behind '['
    std::vector<std::string> all;
    do {
      const std::size_t first = at_;
      const std::string_view low = digits();
      const std::string_view high = take('-') ? digits() : low;
      const std::int64_t from = value(low), to = value(high);
      check(from <= to && to - from < static_cast<std::int64_t>(kMostHosts) && all.size() < kMostHosts, kSite,
            "{}, column {}: '{}', expected a range that ends above its beginning, with fewer than {} hosts", origin_,
            first + 1, text_.substr(first, at_ - first), kMostHosts);
      for (std::int64_t number = from; number <= to; ++number) all.push_back(to_width(number, low.size()));
    } while (take(','));
    check(take(']'), kSite, "{}, column {}: expected ']' here, as in n[001-003,7]", origin_, at_ + 1);
    return all;
  }

  std::string_view digits() {
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    check(end > at_ && end - at_ <= kMostDigits, kSite,
          "{}, column {}: expected a number of at most {} digits here, as in n[001-003,7]", origin_, at_ + 1,
          kMostDigits);
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    return found;
  }

  static std::int64_t value(std::string_view digits) {
    std::int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  bool take(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
};

const Setting* first_of(const Settings& settings, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const Setting* found = settings.find(name)) return found;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view text, const std::string& origin) {
  return NodeListReader(text, origin).names();
}

std::vector<std::int64_t> expand_task_counts(std::string_view text, const std::string& origin) {
  std::vector<std::int64_t> counts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::string_view part = text.substr(at, text.find(',', at) - at);
    const std::size_t repeat = part.find("(x");
    const std::int64_t tasks = slots_from(part.substr(0, repeat));
    const bool closed = repeat == part.npos || part.ends_with(')');
    const std::int64_t times =
        repeat == part.npos ? 1 : (closed ? slots_from(part.substr(repeat + 2, part.size() - repeat - 3)) : -1);
    check(tasks > 0 && times > 0 && counts.size() + static_cast<std::size_t>(times) <= kMostHosts, kSite,
          "{}, column {}: '{}', expected numbers of ranks, as in 8(x2),4", origin, at + 1, part.substr(0, 40));
    counts.insert(counts.end(), static_cast<std::size_t>(times), tasks);
    at += part.size() + 1;
  }
  return counts;
}

HostList slurm_hosts(const Settings& settings) {
  const Setting* nodes = first_of(settings, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  check(nodes != nullptr, kSite, "SLURM_JOB_NODELIST is not set, expected it as inside salloc, sbatch or srun");
  const std::vector<std::string> names = expand_node_list(nodes->value, nodes->origin);
  const bool step = settings.find("SLURM_STEP_NODELIST") == nodes;
  const Setting* tasks = settings.find(step ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE");
  std::vector<std::int64_t> counts;
  if (tasks != nullptr) {
    counts = expand_task_counts(tasks->value, tasks->origin);
    check(counts.size() == names.size(), kSite, "{} is '{}', counts of {} nodes, but {} names {} nodes", tasks->origin,
          tasks->value, counts.size(), nodes->origin, names.size());
  } else {
    counts.assign(names.size(), settings.number("SLURM_NTASKS_PER_NODE", 1, kMostSlots).value_or(0));
  }
  HostList list;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    check(seen.insert(names[i]).second, kSite, "{}: {} is named twice, expected once", nodes->origin, names[i]);
    list.hosts.push_back({.name = names[i], .slots = counts[i], .origin = nodes->origin});
  }
  const auto all = settings.number(step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1, std::int64_t{1} << 32);
  check(!all || !tasks || *all == list.slots(), kSite, "{} counts {} ranks, but SLURM_NTASKS is {}",
        tasks == nullptr ? nodes->origin : tasks->origin, list.slots(), all.value_or(0));
  return list;
}

std::string to_node_list(const HostList& list) {
  struct Run {
    std::string prefix;
    std::size_t width = 0;
    std::int64_t first = 0, last = 0;
  };
  std::string text;
  Run run;
  const auto flush = [&] {
    if (run.width == 0) return;
    if (!text.empty()) text += ',';
    const std::string low = to_width(run.first, run.width);
    text += run.first == run.last ? run.prefix + low
                                  : formatted("{}[{}-{}]", run.prefix, low, to_width(run.last, run.width));
    run.width = 0;
  };
  for (const Host& host : list.hosts) {
    const std::size_t digits = host.name.size() - (host.name.find_last_not_of("0123456789") + 1);
    const bool address = host.name.find_first_not_of("0123456789.") == host.name.npos;
    if (digits == 0 || digits > kMostDigits || address) {
      flush();
      text += (text.empty() ? "" : ",") + host.name;
      continue;
    }
    const std::string prefix = host.name.substr(0, host.name.size() - digits);
    std::int64_t number = 0;
    std::from_chars(host.name.data() + prefix.size(), host.name.data() + host.name.size(), number);
    if (run.width == digits && run.prefix == prefix && run.last + 1 == number) {
      run.last = number;
    } else {
      flush();
      run = {prefix, digits, number, number};
    }
  }
  flush();
  return text;
}

std::string to_task_counts(const HostList& list) {
  std::string text;
  for (std::size_t i = 0, next = 0; i < list.hosts.size(); i = next) {
    for (next = i; next < list.hosts.size() && list.hosts[next].slots == list.hosts[i].slots;) ++next;
    if (!text.empty()) text += ',';
    text += next - i > 1 ? formatted("{}(x{})", list.hosts[i].slots, next - i) : formatted("{}", list.hosts[i].slots);
  }
  return text;
}

}  // namespace lockstep::launch
