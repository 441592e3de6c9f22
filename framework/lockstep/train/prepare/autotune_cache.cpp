#include "lockstep/train/prepare/autotune_cache.h"

#include <nlohmann/json.hpp>
#include <span>

#include "lockstep/core/log.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/io/read_file.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {
namespace {

nlohmann::json read(const std::filesystem::path& cache) {
  std::error_code error;
  if (cache.empty() || !std::filesystem::exists(cache, error)) return nlohmann::json::object();
  try {
    io::FileReader file(cache);  // does not wait for a pipe
    std::string text(file.size(), '\0');
    file.read(std::as_writable_bytes(std::span(text)));
    nlohmann::json all = parse_json(text);
    if (all.is_object()) return all;
    log()->warn("autotune: '{}' is not JSON and will be replaced", cache.string());
  } catch (const std::exception& e) {
    log()->warn("autotune: '{}' cannot be read: {}", cache.string(), e.what());
  }
  return nlohmann::json::object();
}

}  // namespace

KernelChoices read_autotune_cache(const std::filesystem::path& file, const std::string& machine) {
  const nlohmann::json all = read(file);
  KernelChoices choices;
  const auto mine = all.find(machine);
  if (mine == all.end() || !mine->is_object()) return choices;
  for (const auto& [key, value] : mine->items()) {
    if (value.is_string()) choices[key] = value.get<std::string>();
  }
  return choices;
}

void write_autotune_cache(const std::filesystem::path& file, const std::string& machine, const KernelChoices& choices) {
  if (file.empty()) return;
  try {
    nlohmann::json all = read(file);
    all[machine] = choices;
    std::filesystem::create_directories(file.parent_path());
    const std::string text = all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    io::replace_file(file, text, "autotune");
  } catch (const std::exception& e) {
    log()->warn("autotune: choices could not be saved: {}", e.what());
  }
}

}  // namespace lockstep::train
