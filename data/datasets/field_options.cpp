#include "data/datasets/field_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kOptionsSite = "options";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// A name with the channels in its brackets, if there are any.
struct NamedChannels {
  std::string name;
  std::vector<int> channels;
};

NamedChannels parse_channels(std::string_view option, const std::string& text) {
  const std::size_t open = text.find('[');
  NamedChannels named{.name = text.substr(0, open), .channels = {}};
  if (open == std::string::npos) return named;
  check(text.ends_with(']'), kOptionsSite, "--{} has '{}', expected NAME or NAME[CHANNEL,...]", option, text);
  for (const double number : split_numbers(option, std::string_view(text).substr(open + 1, text.size() - open - 2))) {
    check(number >= 0 && number == std::floor(number) && number < 1e6, kOptionsSite,
          "--{} has channel {} in '{}', expected a whole number from 0 on", option, number, text);
    named.channels.push_back(static_cast<int>(number));
  }
  return named;
}

}  // namespace

std::vector<std::string> split_names(std::string_view option, std::string_view text) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  for (std::string& name : names) {
    name = trimmed(name);
    check(!name.empty(), kOptionsSite, "--{} is '{}', expected names with commas between them", option, text);
  }
  return names;
}

void check_name_is_free(std::string_view site, bool is_taken, std::string_view name, std::string_view path) {
  check(!is_taken, site,
        "two fields are called '{}', expected different names: for an array that is an input and a target, --targets "
        "recon={}",
        name, path);
}

std::vector<double> split_numbers(std::string_view option, std::string_view text) {
  std::vector<double> numbers;
  if (text.empty()) return numbers;
  for (const std::string& word : split_names(option, text)) {
    double value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    check(code == std::errc() && end == word.data() + word.size() && std::isfinite(value), kOptionsSite,
          "--{} has '{}', expected finite numbers with commas between them", option, word);
    numbers.push_back(value);
  }
  return numbers;
}

data::Scaling scaling_of(const data::FieldOptions& options) {
  switch (options.normalise) {
    case data::FieldScaling::Standard:
    case data::FieldScaling::Log:
      return data::Scaling::MeanStd;
    case data::FieldScaling::Range:
      return data::Scaling::MinMax;
    case data::FieldScaling::None:
      return data::Scaling::None;
  }
  fail(kOptionsSite, "--normalise is {}, expected a value of FieldScaling", static_cast<int>(options.normalise));
}

std::optional<double> log_offset_of(const data::FieldOptions& options) {
  return options.normalise == data::FieldScaling::Log ? std::optional(options.log_offset) : std::nullopt;
}

data::FieldSymmetryOptions symmetry_options(const data::FieldOptions& options, const std::vector<data::Field>& fields,
                                            int dimensions) {
  data::FieldSymmetryOptions symmetry{.dimensions = dimensions,
                                      .flips = options.symmetry != data::SymmetryKind::Rotations,
                                      .rotations = options.symmetry != data::SymmetryKind::Flips};
  for (const data::Field& field : fields) symmetry.fields.push_back({.name = field.name});
  const auto each_name = [&](std::string_view option, const std::string& text, const auto& add) {
    if (text.empty()) return;
    for (const std::string& one : split_names(option, text)) {
      const NamedChannels named = parse_channels(option, one);
      const auto found = std::ranges::find(symmetry.fields, named.name, &data::SymmetricField::name);
      check(found != symmetry.fields.end(), kOptionsSite,
            "--{} names '{}', and no input or target of that name is on a grid", option, named.name);
      add(*found, named.channels);
    }
  };
  const auto along_axes = [dimensions](std::vector<int> channels) {
    if (channels.empty()) {
      channels.resize(static_cast<std::size_t>(dimensions));
      std::iota(channels.begin(), channels.end(), 0);
    }
    return channels;
  };
  each_name("vectors", options.vectors, [&](data::SymmetricField& field, const std::vector<int>& channels) {
    field.vectors.push_back(along_axes(channels));
  });
  each_name("pseudovectors", options.pseudovectors, [&](data::SymmetricField& field, const std::vector<int>& channels) {
    field.pseudovectors.push_back(along_axes(channels));
  });
  each_name("pseudoscalars", options.pseudoscalars, [&](data::SymmetricField& field, const std::vector<int>& channels) {
    const std::vector<int> all = channels.empty() ? std::vector<int>{0} : channels;
    field.pseudoscalars.insert(field.pseudoscalars.end(), all.begin(), all.end());
  });
  return symmetry;
}

}  // namespace lockstep::datasets
