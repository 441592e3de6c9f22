#include "lockstep/train/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lockstep::train {
namespace {

// At most `width` characters; of long names the end says more than the beginning.
std::string shorten(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return ".." + text.substr(text.size() - (width - 2));
}

std::string percent(double part, double whole) {
  if (whole <= 0 || part <= 0) return "";
  const double share = 100 * part / whole;
  return fmt::format("{:.{}f}%", share, share < 1000 ? 1 : 0);
}

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount * 1e-9 / seconds) : "";
}

void slowest_first(std::vector<ProfileNode>& nodes) {
  std::ranges::stable_sort(nodes, [](const auto& a, const auto& b) { return a.sums.seconds > b.sums.seconds; });
}

constexpr std::string_view kHeading = "{:>7} {:>9} {:>6} {:>8} {:>6} {:>6} {:>6}\n";

std::string heading() {
  return fmt::format(fmt::runtime(kHeading), "calls", "ms/step", "share", "GFLOP/s", "peak", "GB/s", "peak");
}

std::string figures(const ProfileSums& sums, const Profile& profile) {
  const auto steps = static_cast<double>(profile.steps);
  return fmt::format(fmt::runtime(kHeading), fmt::format("{:.4g}", sums.calls / steps),
                     fmt::format("{:.3f}", 1e3 * sums.seconds / steps), percent(sums.seconds, profile.seconds),
                     rate(sums.flops, sums.seconds), percent(sums.flops_at_peak, sums.seconds),
                     rate(sums.bytes, sums.seconds), percent(sums.bytes, sums.seconds * profile.peaks.bytes));
}

std::string part_line(const std::string& name, double seconds, const Profile& profile) {
  return fmt::format("{:<63} {:>7} {:>9.3f} {:>6}\n", name, "", 1e3 * seconds / static_cast<double>(profile.steps),
                     percent(seconds, profile.seconds));
}

std::string peaks_line(const Profile& profile) {
  const Peaks& p = profile.peaks;
  return fmt::format(
      "peaks measured with {} thread{}: {:.0f} GFLOP/s f32 (multiply-adds in registers), {}{:.1f} GB/s (triad)\n",
      profile.threads, profile.threads == 1 ? "" : "s", p.f32_flops * 1e-9,
      p.bf16_flops > 0 ? fmt::format("{:.0f} bf16, ", p.bf16_flops * 1e-9) : "", p.bytes * 1e-9);
}

}  // namespace

void ProfileSums::add(const ProfileSums& other) {
  calls += other.calls;
  seconds += other.seconds;
  flops += other.flops;
  bytes += other.bytes;
  flops_at_peak += other.flops_at_peak;
}

std::vector<ProfileNode> by_class(const Profile& profile) {
  std::map<std::string, ProfileSums> sums;
  for (const ProfileNode& node : profile.nodes) sums[node.op].add(node.sums);
  std::vector<ProfileNode> classes;
  for (const auto& [op, sum] : sums) classes.push_back({"", op, "", sum});
  slowest_first(classes);
  return classes;
}

std::string profile_table(const Profile& profile, std::size_t count) {
  if (profile.steps == 0) return "profile: no step was measured (the first two of each plan are left out)\n";
  std::string text = fmt::format("profile of rank 0: {} steps of {:.3f} ms\n", profile.steps,
                                 1e3 * profile.seconds / static_cast<double>(profile.steps)) +
                     peaks_line(profile);
  text += fmt::format("{:<63} ", "class") + heading();
  for (const ProfileNode& c : by_class(profile))
    text += fmt::format("{:<63} ", shorten(c.op, 63)) + figures(c.sums, profile);
  double rest = profile.seconds;
  for (const ProfileNode& node : profile.nodes) rest -= node.sums.seconds;
  for (const ProfilePart& part : profile.parts) {
    text += part_line(part.name, part.seconds, profile);
    rest -= part.seconds;
  }
  text += part_line("other", std::max(0.0, rest), profile);

  std::vector<ProfileNode> nodes = profile.nodes;
  slowest_first(nodes);
  if (nodes.size() > count) nodes.resize(count);
  text +=
      fmt::format("{:<63} ", fmt::format("the {} slowest of {} nodes", nodes.size(), profile.nodes.size())) + heading();
  for (const ProfileNode& n : nodes) {
    text +=
        fmt::format("{:<22} {:<19} {:<20} ", shorten(n.place, 22), shorten(n.op, 19), shorten(n.implementation, 20)) +
        figures(n.sums, profile);
  }
  return text;
}

}  // namespace lockstep::train
