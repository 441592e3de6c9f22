#include "data/tool/generate.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/generate/darcy.h"
#include "data/generate/gaussian_field.h"
#include "data/generate/generator.h"
#include "data/generate/lennard_jones.h"
#include "data/generate/lorenz.h"
#include "lockstep/core/error.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/report/result_line.h"

namespace lockstep::datasets {
namespace {

struct Common {
  GenerateOptions file;
  std::string output;
  int threads = 0;
  bool doubles = false, json = false;
};

void generate(const Generator& generator, Common& common) {
  host::apply(host::budget(1, common.threads, 0));
  common.file.output = common.output;
  common.file.dtype = common.doubles ? DType::F64 : DType::F32;
  std::int64_t shown = 0;  // tenths
  write_samples(generator, common.file, [&](std::int64_t done) {
    const std::int64_t tenths = done * 10 / common.file.samples;
    if (tenths > shown && tenths < 10)
      fmt::print(stderr, "{}: {} of {}\n", generator.name(), done, common.file.samples);
    shown = tenths;
  });
  std::string sets;
  nlohmann::ordered_json json = {{"file", common.output},
                                 {"equation", generator.name()},
                                 {"samples", common.file.samples},
                                 {"arrays", nlohmann::ordered_json::object()}};
  for (const data::Field& field : generator.fields()) {
    const Shape shape = field.shape.batched(common.file.samples);
    sets += fmt::format("{}{} {}", sets.empty() ? "" : ", ", field.name, shape.str());
    json["arrays"][field.name] = shape.dims();
  }
  train::print_answer(
      common.json, json,
      fmt::format("{} samples of {} in {}: {}", common.file.samples, generator.name(), common.output, sets));
}

// A subcommand of a Generator that is made of an Options. Its callback keeps the options alive.
template <class Options>
struct Command {
  CLI::App* app;
  std::shared_ptr<Options> options;

  template <class T>
  CLI::Option* number(const std::string& name, T Options::*member, const std::string& text) {
    return app->add_option("--" + name, (*options).*member, text)->type_name("N")->capture_default_str();
  }
};

// Adds the subcommand with the options that all have.
template <class Made, class Options>
Command<Options> add(CLI::App* parent, const std::string& name, const std::string& text) {
  Command<Options> command{parent->add_subcommand(name, text), std::make_shared<Options>()};
  const auto common = std::make_shared<Common>();
  command.app->add_option("--samples", common->file.samples, "number of samples")->type_name("N")->required();
  command.app->add_option("--seed", common->file.seed, "sample i is a function of the seed and i")->type_name("N");
  command.app->add_option("--output", common->output, "new HDF5 file")
      ->type_name("FILE")
      ->required()
      ->check([](const std::string& path) { return path.empty() ? "is empty, expected a path" : std::string(); });
  command.app->add_option("--threads", common->threads, "that compute; 0: one per core. The file does not depend on it")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  command.app->add_flag("--f64", common->doubles, "write f64 values, not f32; all are computed in f64");
  command.app->add_flag("--json", common->json, "print a line of JSON: file, equation, samples, arrays");
  command.app->callback([options = command.options, common] { generate(Made(*options), *common); });
  return command;
}

void add_darcy(CLI::App* parent) {
  auto command = add<Darcy, DarcyOptions>(
      parent, "darcy", "Flow in a porous medium: -div(a grad u) = f in a square; coefficient a, solution u");
  using O = DarcyOptions;
  command.number("size", &O::size, "cells per axis");
  command.number("refine", &O::refine, "solve with N times more cells per axis and keep the middle ones; odd");
  command.app->add_flag("--log-normal", command.options->log_normal,
                        "the coefficient is the exponential of a random field, not one of two values");
  command.number("low", &O::low, "the coefficient where the random field is below 0");
  command.number("high", &O::high, "the coefficient elsewhere");
  command.number("spread", &O::spread, "with --log-normal: standard deviation of the coefficient's logarithm");
  command.number("alpha", &O::alpha, "smoothness: the random field's covariance is (-Laplace + tau^2)^-alpha");
  command.number("tau", &O::tau, "inverse length of the random field");
  command.number("source", &O::source, "the right-hand side f");
  command.number("tolerance", &O::tolerance, "of the solver: residual over right-hand side");
}

void add_gaussian(CLI::App* parent) {
  auto command = add<GaussianField, GaussianFieldOptions>(parent, "gaussian",
                                                          "Random fields in a periodic cube with the power spectrum A "
                                                          "(k / k_Nyquist)^n; density, and parameters (log A, n)");
  using O = GaussianFieldOptions;
  command.number("size", &O::size, "cells per axis");
  command.number("min-log-amplitude", &O::min_log_amplitude, "log A is at least N");
  command.number("max-log-amplitude", &O::max_log_amplitude, "log A is at most N");
  command.number("min-index", &O::min_index, "n is at least N");
  command.number("max-index", &O::max_index, "n is at most N");
}

void add_lennard_jones(CLI::App* parent) {
  auto command = add<LennardJones, LennardJonesOptions>(
      parent, "lennard-jones", "Clusters of atoms at one temperature; positions, energies, forces, in reduced units");
  using O = LennardJonesOptions;
  command.number("atoms", &O::atoms, "atoms of a cluster");
  command.number("temperature", &O::temperature, "of the ensemble");
  command.number("sweeps", &O::sweeps, "trials per atom of the chain that each sample has for itself");
}

void add_lorenz(CLI::App* parent) {
  auto command = add<Lorenz, LorenzOptions>(parent, "lorenz",
                                            "Windows of Lorenz's chaotic system of 1963; past and future values");
  using O = LorenzOptions;
  command.number("past", &O::past, "values that a model sees");
  command.number("future", &O::future, "values that follow");
  command.number("interval", &O::interval, "time between two values");
}

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App* const generated = app.add_subcommand("generate", "Computes samples of an equation, into an HDF5 file");
  generated->require_subcommand(1);
  add_darcy(generated);
  add_gaussian(generated);
  add_lennard_jones(generated);
  add_lorenz(generated);
}

}  // namespace lockstep::datasets
