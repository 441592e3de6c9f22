// The facts of a run before its model is known: options, threads and data, which all ranks have checked together.
#pragma once

#include <optional>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/options/options.h"
#include "lockstep/train/run/start_checks.h"

namespace lockstep::train {

struct RunFacts {
  const comm::Communicator& comm;
  Options options;
  std::string name;     // name of the program
  std::string program;  // the program's own options, the text of a JSON object
  DType dtype;
  host::ThreadBudget threads = {};
  data::RunData data = {};
  bool own_data = false;  // the caller's, not the set that options name
  StartReport start = {};
  // Of a run that trains nothing: the file of its weights, which options.weights names too, and the update that made
  // them; -1: not known, as of a file of weights alone.
  std::string weights = {};
  std::int64_t weights_step = -1;

  bool trains() const { return options.purpose() == data::Purpose::Train; }
  std::int64_t global_batch() const { return train::global_batch(options, comm.size()); }
  // Whether the run writes checkpoints without a request.
  bool saves_by_itself() const { return trains() && options.checkpoints.any(); }
};

// Where a run's data comes from: the entry of a catalogue that options name, or the caller.
struct DataSource {
  data::Catalogue catalogue{};
  std::optional<data::RunData> own{};
};

// Checks options, name and data on all ranks together, divides the cores, and opens the data. Collective; throws
// CommandLineError or AgreedError on all ranks.
RunFacts agree_on_run(const comm::Communicator& comm, Options options, std::string name, std::string program,
                      DataSource source);

}  // namespace lockstep::train
