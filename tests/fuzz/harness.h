// The form of a fuzz harness: LLVMFuzzerTestOneInput reads one input, and seeds() are whole inputs to begin with. A
// reader may refuse anything with an Error; whatever else it throws, a crash, a hang, or memory beyond the driver's
// limit is a failure. driver.cpp runs mutants where clang's libFuzzer does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT: its name

namespace lockstep::fuzz {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> seeds();  // of the harness that is linked

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file of this name in a folder of this process alone, which goes with it.
std::filesystem::path scratch_file(std::string_view name);
// The same, with this content.
std::filesystem::path input_file(std::string_view name, std::span<const std::uint8_t> content);
// The content of a file that is there.
Bytes content_of(const std::filesystem::path& path);

// Calls `read`; an Error is an answer like any other.
void expect_answer(const std::function<void()>& read);

}  // namespace lockstep::fuzz
