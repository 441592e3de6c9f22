#include "lockstep/train/report/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace lockstep::train {
namespace {

constexpr std::size_t kNames = 63;  // columns in front of the figures

// Shortens a text to `width` characters: its first `head` characters, "..", and its end if there is room for more than
// a few letters.
std::string shorten(const std::string& text, std::size_t head, std::size_t width) {
  constexpr std::size_t kLeast = 4;
  if (text.size() <= width) return text;
  head = std::min(head, width - 2);
  const std::size_t room = width - 2 - head;
  return text.substr(0, head) + ".." + (room >= kLeast ? text.substr(text.size() - room) : "");
}

std::size_t after(const std::string& text, char mark) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? 0 : at + 1;
}

using Names = std::array<std::string, 3>;  // module path, op, kernel
using Widths = std::array<std::size_t, 3>;

// Shortens names and keeps their characteristic parts: the first word and the end of "grad layer4.0.conv1" and of
// "conv2d_backward_weights", the algorithm and the end of the instruction set of "jit_wino_4x3:avx512_core".
Names shortened(const ProfileNode& n, const Widths& widths) {
  const std::size_t algorithm = after(n.implementation, ':');
  return {shorten(n.module_path, after(n.module_path, ' '), widths[0]), shorten(n.op, after(n.op, '_'), widths[1]),
          shorten(n.implementation, algorithm > 0 ? algorithm : widths[2] / 2, widths[2])};
}

// Returns the widths of the columns: each as wide as its longest name. If they are too wide together, ops and kernels
// are shortened before module paths, which are more numerous.
Widths widths_for(const std::vector<ProfileNode>& nodes) {
  Widths widths{};
  for (const ProfileNode& n : nodes) {
    const std::array sizes{n.module_path.size(), n.op.size(), n.implementation.size()};
    for (std::size_t k = 0; k < widths.size(); ++k) widths[k] = std::max(widths[k], sizes[k]);
  }
  constexpr std::size_t kRoom = kNames - 2;  // two blanks between them
  constexpr std::size_t kLeast = 16;         // columns for an op or a kernel
  widths[0] = std::min(widths[0], kRoom - std::min(widths[1], kLeast) - std::min(widths[2], kLeast));
  while (widths[0] + widths[1] + widths[2] > kRoom) --(widths[1] > widths[2] ? widths[1] : widths[2]);
  widths[2] = kRoom - widths[0] - widths[1];
  return widths;
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
  return fmt::format("{:<{}} {:>7} {:>9.3f} {:>6}\n", name, kNames, "",
                     1e3 * seconds / static_cast<double>(profile.steps), percent(seconds, profile.seconds));
}

std::string peaks_line(const Profile& profile) {
  const kernels::Peaks& p = profile.peaks;
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
  if (profile.steps == 0) return "profile: no step was measured (the first two runs of each plan are not measured)\n";
  std::string text = fmt::format("profile of rank 0: {} steps of {:.3f} ms\n", profile.steps,
                                 1e3 * profile.seconds / static_cast<double>(profile.steps)) +
                     peaks_line(profile);
  text += fmt::format("{:<{}} ", "class", kNames) + heading();
  for (const ProfileNode& c : by_class(profile))
    text += fmt::format("{:<{}} ", shorten(c.op, after(c.op, '_'), kNames), kNames) + figures(c.sums, profile);
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
      fmt::format("{:<{}} ", fmt::format("the {} slowest of {} nodes", nodes.size(), profile.nodes.size()), kNames) +
      heading();
  const Widths widths = widths_for(nodes);
  for (const ProfileNode& n : nodes) {
    const Names names = shortened(n, widths);
    text += fmt::format("{:<{}} {:<{}} {:<{}} ", names[0], widths[0], names[1], widths[1], names[2], widths[2]) +
            figures(n.sums, profile);
  }
  return text;
}

}  // namespace lockstep::train
