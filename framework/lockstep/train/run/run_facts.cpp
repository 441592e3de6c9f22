#include "lockstep/train/run/run_facts.h"

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/data/resize.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/run/session_setup.h"

namespace lockstep::train {
namespace {

// Opens the data set; an error also tells if its folder is that of an environment variable.
data::DatasetPair open_data(data::Catalogue catalogue, const data::DatasetOptions& dataset, const Options& options) {
  const auto variable = options.from_environment.find("data-dir");
  try {
    return data::open_datasets(catalogue, dataset);
  } catch (const Error& error) {
    if (variable == options.from_environment.end() || !data::find_dataset(catalogue, dataset.name).needs_dir) throw;
    throw Error(formatted("{}; --data-dir {} is from {}", error.what(), dataset.dir.string(), variable->second));
  }
}

}  // namespace

RunFacts agree_on_run(const comm::Communicator& comm, Options options, std::string name, std::string program,
                      data::Catalogue catalogue) {
  RunFacts facts{.comm = comm,
                 .options = std::move(options),
                 .name = std::move(name),
                 .program = std::move(program),
                 .dtype = DType::F32};
  const Options& o = facts.options;
  facts.dtype = dtype_of(o.precision);
  check_together(comm, [&] {
    validate(o, comm.size());
    data::check_dataset(catalogue, o.dataset.name, o.dataset.dir);
  });
  facts.threads = share_threads(comm, o);
  facts.start = check_start(facts);
  apply(facts.threads);
  comm::collectively(comm, [&] {
    data::DatasetOptions dataset = o.dataset;
    dataset.seed = o.seed;
    facts.data = open_data(catalogue, dataset, o);
    if (o.resize > 0) facts.data.image_shape = data::resized(facts.data.image_shape, o.resize);
  });
  check_together(comm, [&] { validate_data(o, comm.size(), facts.data.train->size()); });
  check_data(facts);
  return facts;
}

}  // namespace lockstep::train
