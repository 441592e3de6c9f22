#include "lockstep/train/run/run_facts.h"

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/run/session_setup.h"

namespace lockstep::train {
namespace {

// Opens the data set; an error also tells if its folder is that of an environment variable.
data::RunData open_data(data::Catalogue catalogue, const data::DatasetOptions& dataset, const Options& options) {
  const auto variable = options.from_environment.find("data-dir");
  try {
    return data::open_data(catalogue, dataset);
  } catch (const Error& error) {
    if (variable == options.from_environment.end() || !data::find_dataset(catalogue, dataset.name).needs_dir) throw;
    throw Error(formatted("{}; --data-dir {} is from {}", error.what(), dataset.dir.string(), variable->second));
  }
}

}  // namespace

RunFacts agree_on_run(const comm::Communicator& comm, Options options, std::string name, std::string program,
                      DataSource source) {
  RunFacts facts{.comm = comm,
                 .options = std::move(options),
                 .name = std::move(name),
                 .program = std::move(program),
                 .dtype = DType::F32};
  const Options& o = facts.options;
  facts.dtype = dtype_of(o.precision);
  check_together(comm, [&] {
    validate(o, comm.size());
    if (!source.own) data::check_dataset(source.catalogue, o.dataset);
  });
  facts.threads = share_threads(comm, o);
  facts.start = check_start(facts);
  apply(facts.threads);
  data::DatasetOptions dataset = o.dataset;
  dataset.seed = o.seed;
  dataset.floats = facts.dtype;
  if (source.own) {
    facts.data = *std::move(source.own);
    comm::collectively(comm, [&] {
      facts.data.check();
      data::convert_floats(facts.data, facts.dtype);
    });
  } else {
    comm::collectively(comm, [&] { facts.data = open_data(source.catalogue, dataset, o); });
    data::prepare_data(source.catalogue, dataset, facts.data, &comm);
  }
  check_together(comm, [&] {
    if (facts.data.stream)
      validate_stream(o, comm.size());
    else
      validate_data(o, comm.size(), facts.data.train->size());
  });
  check_data(facts);
  return facts;
}

}  // namespace lockstep::train
