// The state of a trainer in and out of a file: Training::save() and resume().
#include <algorithm>
#include <cstring>
#include <span>

#include "bindings/c/collective_call.h"
#include "bindings/c/state_file.h"
#include "bindings/c/training.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::bindings {
namespace {

using Counts = SampleMemory::Counts;

// Returns on rank 0 the bytes of each rank, one after the other; nothing elsewhere.
std::vector<std::byte> gathered(const comm::Communicator& comm, std::span<const std::byte> mine,
                                const std::vector<std::int64_t>& sizes) {
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  std::vector<std::byte> all;
  together(comm, LOCKSTEP_ERROR_MEMORY, [&] { all.resize(comm.is_root() ? static_cast<std::size_t>(total) : 0); });
  comm.gatherv(comm::ConstBuffer(mine), comm::Buffer(all), sizes);
  return all;
}

}  // namespace

void Training::save(const std::filesystem::path& path) {
  require_usable();
  open_call(comm_, {Call::Save}, [] {});
  std::vector<io::NamedTensor> tensors;
  StateFacts facts{.description = model_->text(), .optimizer = optimizer_, .updates = trainer_->updates()};
  std::vector<std::int64_t> sizes;
  std::vector<std::byte> samples;
  communicate([&] {
    tensors = trainer_->state(comm_.is_root());
    const Counts counts = memory_.counts();
    const std::vector<std::int64_t> offered = comm_.allgather(counts.offered), drawn = comm_.allgather(counts.drawn);
    for (std::size_t r = 0; r < offered.size(); ++r) facts.memories.push_back({offered[r], drawn[r]});
    sizes = comm_.allgather(static_cast<std::int64_t>(memory_.bytes().size()));
    samples = gathered(comm_, memory_.bytes(), sizes);
  });
  together(comm_, LOCKSTEP_ERROR_FILE, [&] {
    if (!comm_.is_root()) return;
    std::size_t begin = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      if (sizes[r] == 0) continue;
      Tensor bytes({sizes[r]}, DType::U8);
      std::memcpy(bytes.raw(), samples.data() + begin, bytes.bytes());
      begin += bytes.bytes();
      tensors.push_back({memory_name(static_cast<int>(r)), std::move(bytes)});
    }
    save_state(path, facts, std::move(tensors));
  });
}

void Training::resume(const std::filesystem::path& path) {
  require_usable();
  const std::string file_name = path.string();
  std::optional<checkpoint::StoredCheckpoint> file;  // on rank 0 alone
  StateFacts facts;
  open_call(comm_, {Call::Resume}, [] {});
  together(comm_, LOCKSTEP_ERROR_FILE, [&] {
    if (comm_.is_root()) file.emplace(open_state(path));
  });
  const std::string metadata = comm_.broadcast_string(file ? file->metadata() : "");
  together(comm_, LOCKSTEP_ERROR_FILE, [&] {
    facts = facts_of(metadata, file_name);
    check(facts.description == model_->text(), "state", "{}: its model is {}, this trainer's is {}", file_name,
          facts.description, model_->text());
    check(facts.optimizer == optimizer_, "state", "{}: its optimizer is '{}', this trainer's is '{}'", file_name,
          facts.optimizer, optimizer_);
  });
  const io::TensorSource all = file ? file->tensors() : io::TensorSource();
  const auto is_memory = [](const io::TensorInfo& info) { return info.name.starts_with("memory/"); };
  const io::TensorSource of_training = select(all, [&](const io::TensorInfo& info) { return !is_memory(info); });
  try {
    communicate([&] { trainer_->load(of_training, file_name, facts.updates); });
  } catch (const comm::AgreedError& error) {
    // A tensor may have been replaced already.
    unusable_ = error.what();
    throw CodedError(LOCKSTEP_ERROR_FILE, error.what());
  }
  inferred_update_ = -1;
  const auto ranks = std::min<std::size_t>(facts.memories.size(), static_cast<std::size_t>(comm_.size()));
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<std::byte> bytes;
    together(comm_, LOCKSTEP_ERROR_FILE, [&] {
      if (!file) return;
      for (std::size_t i = 0; i < all.infos.size(); ++i) {
        if (all.infos[i].name != memory_name(static_cast<int>(r))) continue;
        const Tensor& tensor = all.tensor(i).tensor;
        bytes.assign(tensor.raw(), tensor.raw() + tensor.bytes());
      }
    });
    bytes = comm_.broadcast_bytes(bytes);
    together(comm_, LOCKSTEP_ERROR_FILE, [&] {
      if (static_cast<int>(r) == comm_.rank() && memory_.capacity() > 0) memory_.restore(bytes, facts.memories[r]);
    });
  }
}

}  // namespace lockstep::bindings
