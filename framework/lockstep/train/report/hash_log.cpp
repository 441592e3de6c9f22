#include "lockstep/train/report/hash_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lockstep/core/error.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {
namespace {

constexpr const char* kHashesSite = "hashes";
constexpr const char* kHashesName = "hashes.jsonl";
constexpr std::size_t kDigits = 16;

std::optional<std::uint64_t> hash_in(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (text.size() != kDigits || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return hash;
}

std::optional<HashRecord> record_in(const std::string& line) {
  const auto json = parse_json<nlohmann::ordered_json>(line);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer() || !json.contains("tensors") ||
      !json["tensors"].is_object())
    return std::nullopt;
  HashRecord record{.step = json["step"].get<std::int64_t>()};
  for (const auto& item : json["tensors"].items()) {
    const auto hash = hash_in(item.value());
    if (!hash) return std::nullopt;
    record.tensors.push_back({item.key(), *hash});
  }
  return record;
}

}  // namespace

std::filesystem::path hash_log_path(const std::filesystem::path& output) { return output / kHashesName; }

HashLog::HashLog(std::shared_ptr<const io::Folder> output, std::int64_t every, std::optional<std::int64_t> resumed_step)
    : every_(every),
      lines_({.folder = std::move(output),
              .name = kHashesName,
              .site = kHashesSite,
              .resumed_step = resumed_step,
              .stays = [this](const nlohmann::json& line) {
                last_ = std::max(last_, line["step"].get<std::int64_t>());
                return line.contains("tensors");
              }}) {
  if (every_ > 0) lines_.open();
}

void HashLog::check_file(const io::Folder& output) { JsonLines::check_file(output, kHashesName, kHashesSite); }

void HashLog::write(std::int64_t step, std::span<const TensorHash> hashes) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  // A plain list of pairs is faster: the ordered map would search all earlier names for each name.
  auto& entries = tensors.get_ref<nlohmann::ordered_json::object_t&>();
  for (const auto& [name, hash] : hashes) entries.emplace_back(name, fmt::format("{:016x}", hash));
  lines_.append({{"step", step}, {"tensors", std::move(tensors)}});
  last_ = step;
}

HashLogReader::HashLogReader(const std::filesystem::path& path) : path_(path.string()) {
  std::error_code error;  // checks for a regular file first: opening a pipe would block
  if (std::filesystem::is_regular_file(path, error)) in_.open(path, std::ios::binary);
  check(in_.is_open(), kHashesSite, "{} cannot be read", path_);
}

std::optional<HashRecord> HashLogReader::next() {
  std::string line;
  if (!std::getline(in_, line)) {
    check(!in_.bad(), kHashesSite, "{} cannot be read", path_);
    return std::nullopt;
  }
  ++line_;
  if (in_.eof()) return std::nullopt;  // a line without a newline is incomplete
  auto record = record_in(line);
  check(record.has_value(), kHashesSite, "{} line {} is no record of hashes", path_, line_);
  check(record->step > step_, kHashesSite, "{} line {} is of step {}, expected one after {}", path_, line_,
        record->step, step_);
  step_ = record->step;
  return record;
}

}  // namespace lockstep::train
