#include "lockstep/train/run/earlier_checkpoints.h"

#include <fmt/format.h>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/io/read_file.h"

namespace lockstep::train {

namespace {

// Returns whether a checkpoint belongs to another run; false if its file cannot be read.
bool is_foreign(const io::Folder& checkpoints, const checkpoint::Entry& entry, const std::string& run) {
  try {
    io::FileReader reader(checkpoints, entry.path.filename().string());
    const std::string found = checkpoint::run_of(checkpoint::read_note(reader));
    return !found.empty() && found != run;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void set_checkpoints_aside(const io::Folder& output, std::optional<std::int64_t> resumed_step, const std::string& run) {
  const io::Folder checkpoints = output.make("checkpoints");
  std::optional<io::Folder> aside;
  for (const checkpoint::Entry& entry : checkpoint::list(checkpoints)) {
    if (resumed_step && entry.step <= *resumed_step && !is_foreign(checkpoints, entry, run)) continue;
    for (int number = 1; !aside; ++number) {
      const std::string name = fmt::format("checkpoints.{}", number);
      if (output.make_new(name)) aside = output.make(name);
    }
    const std::string name = entry.path.filename().string();
    checkpoints.move(name, *aside, name);
  }
}

}  // namespace lockstep::train
