#include "lockstep/train/options/tuning_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

std::vector<std::string> parts_of(std::string_view text, std::string_view option, std::string_view form) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    check(!parts.back().empty(), kOptionsSite, "--{} is '{}', expected {}", option, text, form);
    begin = end + 1;
  }
  return parts;
}

double factor_of(std::string_view number) {
  double factor = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), factor);
  return code == std::errc() && end == number.data() + number.size() ? factor : 0;
}

}  // namespace

std::vector<std::string> freeze_patterns(const TuningOptions& options) {
  return parts_of(options.freeze, "freeze", "PATTERN or PATTERN,PATTERN,..., as in 'conv1.*,layer1.*'");
}

std::vector<optim::ParameterGroup> rate_groups(const TuningOptions& options) {
  constexpr std::string_view kForm = "PATTERN=FACTOR or PATTERN=FACTOR,PATTERN=FACTOR,..., as in 'layer4.*=0.1'";
  std::vector<optim::ParameterGroup> groups;
  for (const std::string& part : parts_of(options.lr_scale, "lr-scale", kForm)) {
    const std::size_t equals = part.rfind('=');
    check(equals != std::string::npos && equals > 0, kOptionsSite, "--lr-scale has the part '{}', expected {}", part,
          kForm);
    const double factor = factor_of(std::string_view(part).substr(equals + 1));
    check(std::isfinite(factor) && factor > 0, kOptionsSite,
          "--lr-scale has the part '{}', expected a factor above 0 behind '='; --freeze keeps parameters as they are",
          part);
    groups.push_back({.pattern = part.substr(0, equals), .rate_scale = factor});
  }
  return groups;
}

std::vector<optim::ParameterGroup> decay_groups(const TuningOptions& options) {
  std::vector<optim::ParameterGroup> groups;
  for (std::string& pattern : parts_of(options.no_decay, "no-decay", "PATTERN or PATTERN,PATTERN,..., as in '*.scale'"))
    groups.push_back({.pattern = std::move(pattern), .weight_decay = 0});
  return groups;
}

}  // namespace lockstep::train
