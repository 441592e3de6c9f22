#include "lockstep/checkpoint/increment.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kSite = "checkpoint";
constexpr const char* kBase = "base";

std::map<std::string, std::size_t> places_of(const std::vector<io::TensorInfo>& infos) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < infos.size(); ++i) places[infos[i].name] = i;
  return places;
}

// Whether `values` has `rows` rows of the tensor `all`.
bool fits(const io::TensorInfo& values, const io::TensorInfo& rows, const io::TensorInfo& all) {
  if (all.shape.rank() == 0 || rows.dtype != DType::I32 || rows.shape.rank() != 1) return false;
  std::vector<std::int64_t> dims = all.shape.dims();
  dims[0] = rows.shape[0];
  return values.dtype == all.dtype && values.shape == Shape(dims);
}

}  // namespace

std::string note_with_base(const std::string& note, const Base& base) {
  nlohmann::json json = nlohmann::json::parse(note);
  json[kBase] = {{"step", base.step}, {"hash", base.hash}, {"number", base.number}};
  return json.dump();
}

std::optional<Base> base_of(const std::string& note) {
  const nlohmann::json json = nlohmann::json::parse(note, nullptr, false);
  if (!json.is_object() || !json.contains(kBase)) return std::nullopt;
  const nlohmann::json& base = json[kBase];
  const auto is_count = [&](const char* key) { return base.contains(key) && base[key].is_number_unsigned(); };
  if (!base.is_object() || !is_count("step") || !is_count("number") || !base.contains("hash") ||
      !base["hash"].is_string())
    return std::nullopt;
  return Base{.step = base["step"], .hash = base["hash"], .number = base["number"]};
}

MergedTensors::MergedTensors(io::VerifiedFile& file, io::VerifiedFile& base) : file_(file), base_(base) {
  const std::vector<io::TensorInfo>&infos = file.image().tensors(), &of_base = base.image().tensors();
  const std::map<std::string, std::size_t> places = places_of(infos), base_places = places_of(of_base);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const io::TensorInfo& info = infos[i];
    if (!info.name.starts_with(kValuesPrefix)) {
      entries_.push_back({.info = info, .index = i});
      continue;
    }
    const std::string name = info.name.substr(kValuesPrefix.size());
    const auto whole = base_places.find(name);
    const auto rows = places.find(std::string(kRowsPrefix) + name);
    check(whole != base_places.end() && rows != places.end() && fits(info, infos[rows->second], of_base[whole->second]),
          kSite, "{}: the changed rows of \"{}\" do not fit the checkpoint {} since which they changed", file.path(),
          name, base.path());
    entries_.push_back({.info = of_base[whole->second], .index = whole->second, .rows = rows->second, .values = i});
  }
  std::ranges::sort(entries_, {}, [](const Entry& entry) { return entry.info.name; });
}

io::TensorSource MergedTensors::tensors(bool changes) {
  std::vector<std::size_t> chosen;
  io::TensorSource source;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!changes && entries_[i].info.name.starts_with(kRowsPrefix)) continue;
    chosen.push_back(i);
    source.infos.push_back(entries_[i].info);
  }
  source.tensor = [this, chosen = std::move(chosen)](std::size_t i) -> const io::NamedTensor& {
    return read(entries_[chosen[i]]);
  };
  return source;
}

const io::NamedTensor& MergedTensors::read(const Entry& entry) {
  current_ = {};  // frees its memory before the next tensor is read
  current_ = {entry.info.name, (entry.values ? base_ : file_).image().read(entry.index)};
  if (entry.values) put_rows(entry, current_.tensor);
  return current_;
}

void MergedTensors::put_rows(const Entry& entry, Tensor& into) const {
  const std::int64_t count = file_.image().tensors()[*entry.rows].shape[0], rows = entry.info.shape[0];
  if (count == 0 || into.bytes() == 0) return;
  const Tensor numbers = file_.image().read(*entry.rows), values = file_.image().read(*entry.values);
  const std::size_t row_bytes = into.bytes() / static_cast<std::size_t>(rows);
  const std::byte* from = values.raw();
  for (const std::int32_t row : numbers.data<std::int32_t>()) {
    check(row >= 0 && row < rows, kSite, "{}: \"{}\" has a changed row {}, expected one of {} rows", file_.path(),
          entry.info.name, row, rows);
    std::memcpy(into.raw() + static_cast<std::size_t>(row) * row_bytes, from, row_bytes);
    from += row_bytes;
  }
}

}  // namespace lockstep::checkpoint
