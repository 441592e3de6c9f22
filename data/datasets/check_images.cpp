#include "data/datasets/check_images.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "data/datasets/image_folder.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/on_threads.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/images/encoded_image.h"
#include "lockstep/io/read_file.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kCheckImagesSite = "image folder";
constexpr std::size_t kEnd = 64;  // bytes that are read of a file's end
constexpr int kThreads = 4;
constexpr std::size_t kNamed = 10;  // damaged files in a message
constexpr double kLong = 20;        // seconds after which the log tells what they were for

bool begins_with(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
}
bool contains(std::span<const std::byte> bytes, std::string_view part) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(part) != part.npos;
}

bool looks_whole(const io::FileReader& reader) {
  const std::vector<std::byte> start = reader.peek(0, 8);
  const std::vector<std::byte> end = reader.peek(reader.size() > kEnd ? reader.size() - kEnd : 0, kEnd);
  if (begins_with(start, "\xFF\xD8\xFF")) return contains(end, "\xFF\xD9");
  return begins_with(start, "\x89PNG\r\n\x1A\n") && contains(end, "IEND");
}

struct Damage {
  std::int64_t files = 0;            // damaged ones
  std::vector<std::string> first{};  // what is wrong with the first ones
};

// Looks at samples [begin, end) of a set.
Damage damage_of(const data::Dataset& set, Range samples) {
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::string>> found;
  on_threads(kThreads, [&](std::size_t thread) {
    const Range mine = part_of(samples.size(), kThreads, static_cast<std::int64_t>(thread));
    for (std::int64_t i = samples.begin + mine.begin; i < samples.begin + mine.end; ++i) {
      std::string reason = image_damage(set.locate(i));
      if (reason.empty()) continue;
      const std::lock_guard lock(mutex);
      found.emplace_back(i, std::move(reason));
    }
  });
  std::ranges::sort(found);
  Damage damage{.files = std::ssize(found)};
  for (auto& [index, reason] : found) {
    if (damage.first.size() < kNamed) damage.first.push_back(std::move(reason));
  }
  return damage;
}

// Adds what other ranks have found, in the order of the ranks, and so of the files.
Damage of_all_ranks(const comm::Communicator& comm, const Damage& mine) {
  Damage all{.files = comm.allreduce(mine.files, comm::ReduceOp::Sum)};
  if (all.files == 0) return all;
  for (const std::string& text : comm.allgather_strings(joined(mine.first, "; "))) {
    if (!text.empty() && all.first.size() < kNamed) all.first.push_back(text);
  }
  return all;
}

}  // namespace

std::string image_damage(const std::filesystem::path& file) {
  try {
    io::FileReader reader(file, std::string(kCheckImagesSite));
    if (looks_whole(reader)) return "";
    check(reader.size() <= kMostImageBytes, kCheckImagesSite, "{}: {} bytes, expected an image of at most {}",
          reader.path(), reader.size(), kMostImageBytes);
    std::vector<std::byte> bytes(reader.size());
    reader.read(bytes);
    const auto image = data::open_image(bytes, file.string());
    image->decode({.rows = {0, image->height()}, .columns = {0, image->width()}}, 1);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void check_image_files(const data::RunData& data, const data::DatasetOptions& options, const comm::Communicator* comm) {
  const auto began = std::chrono::steady_clock::now();
  const int ranks = comm == nullptr ? 1 : comm->size(), rank = comm == nullptr ? 0 : comm->rank();
  std::int64_t files = 0;
  const auto look = [&] {
    Damage found;
    for (const data::Dataset* set : {data.train.get(), data.eval.get()}) {
      if (set == nullptr) continue;
      files += set->size();
      Damage more = damage_of(*set, part_of(set->size(), ranks, rank));
      found.files += more.files;
      for (std::string& reason : more.first) {
        if (found.first.size() < kNamed) found.first.push_back(std::move(reason));
      }
    }
    return found;
  };
  const Damage damage = comm == nullptr ? look() : of_all_ranks(*comm, comm::collectively(*comm, look));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (took.count() > kLong && rank == 0)
    log()->info("data: looking at the ends of {} files took {:.0f} s; packed records (`lockstep pack`) take less",
                files, took.count());
  if (damage.files == 0) return;
  const std::string text =
      formatted("{} of {} image files are damaged: {}{}", damage.files, files, joined(damage.first, "; "),
                damage.files > std::ssize(damage.first) ? "; ..." : "");
  if (options.samples.unreadable == data::Unreadable::Replace) {
    if (rank == 0) log()->warn("data: {}; their samples are replaced", text);
    return;
  }
  const std::string error = formatted(
      "{}; expected whole files: remove these, or --unreadable replace; `lockstep-data check folder` decodes all files",
      text);
  if (comm != nullptr) throw comm::AgreedError(formatted("[{}] {}", kCheckImagesSite, error));
  fail(kCheckImagesSite, "{}", error);
}

}  // namespace lockstep::datasets
