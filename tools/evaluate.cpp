#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/core/error.h"
#include "tools/commands.h"
#include "tools/usage.h"
#include "tools/use_weights.h"

namespace lockstep::tools {
namespace {

constexpr const char* kEvaluateHelp = R"(Examples:
  mpirun -n 4 lockstep evaluate runs/flow
  mpirun -n 4 lockstep evaluate runs/flow --best       # of a run with --keep best:NAME
  mpirun -n 4 lockstep evaluate runs/flow/checkpoints/step-0000001200.h5 --files 'new*.h5'

The program that wrote the checkpoint takes this one's place, with --evaluate-only, the checkpoint's weights, and the
options with which it ran that say what model and data are; options that follow here replace them. Samples are
normalised as in that run. Without options these are the run's evaluation samples; of other --files, all samples.
Results are printed (--json: as lines of JSON), and added to evaluations.jsonl in the run's folder.)";

constexpr const char* kPredictHelp = R"(Examples:
  mpirun -n 4 lockstep predict runs/flow --output new.h5 --files 'new*.h5'
  lockstep predict runs/digits/checkpoints/step-0000000282.h5 --output digits.csv

The program that wrote the checkpoint takes this one's place, with --predict, the checkpoint's weights, and the options
with which it ran that say what model and data are; options that follow here replace them. Samples of --files, or of
the evaluation set where the data set has no --files, are normalised as in that run, and need no targets. Predictions
are in the order of the samples and in the units of the training files; those of classes are class and probability.
The same file comes from any number of ranks. --json prints file, samples and arrays as a line of JSON.)";

struct Arguments {
  std::string named, output, program;
  bool best = false, json = false;
  CLI::App* command = nullptr;
};

// Takes the value of an option from words that CLI11 has left because they stand behind the program's options.
void take(std::vector<std::string>& words, const std::string& option, std::string& value) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const bool joint = words[at].starts_with(option + "=");
    if (words[at] != option && !joint) continue;
    check_usage([&] {
      check(joint || at + 1 < words.size(), "command line", "{} is the last word, expected a value behind it", option);
    });
    value = joint ? words[at].substr(option.size() + 1) : words[at + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at),
                words.begin() + static_cast<std::ptrdiff_t>(at + (joint ? 1 : 2)));
    return;
  }
}

// The same for an option without a value; false: it is not there.
bool take(std::vector<std::string>& words, const std::string& option) { return std::erase(words, option) > 0; }

void use(Arguments& a, bool predicts) {
  UseRequest request{.use = predicts ? UseRequest::Use::Predict : UseRequest::Use::Evaluate,
                     .user = a.command->remaining()};
  take(request.user, "--program", a.program);
  if (predicts) {
    take(request.user, "--output", a.output);
    check_usage([&] {
      check(!a.output.empty(), "command line",
            "--output is missing, expected the file for the predictions: .h5, .npz, .npy or .csv");
    });
  }
  const bool best = take(request.user, "--best") || a.best;
  if (take(request.user, "--json") || a.json) request.user.emplace_back("--json");  // the program's
  const checkpoint::WeightsSource source =
      checkpoint::find_weights(a.named, best ? checkpoint::Pick::Best : checkpoint::Pick::Newest);
  request.result = a.output;
  start_program(source, a.program, std::move(request));
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& text, const char* footer,
                      bool predicts) {
  CLI::App* command = app.add_subcommand(name, text);
  command->footer(footer);
  command->prefix_command();  // the words from the first unknown option on are the program's
  auto a = std::make_shared<Arguments>();
  a->command = command;
  command
      ->add_option("weights", a->named, "A checkpoint, or the folder of a run, whose newest whole checkpoint is taken")
      ->required()
      ->type_name("CHECKPOINT|RUN");
  command->add_flag("--best", a->best,
                    "Of a run's folder, the best checkpoint, by the metric of the run's --keep best:NAME");
  command->add_flag("--json", a->json,
                    predicts ? "A line of JSON: file, samples, arrays" : "A line of JSON for each set: data, results");
  if (predicts)
    command->add_option("--output", a->output, "The file for predictions: a new .h5, .npz, .npy or .csv")
        ->type_name("FILE");
  command
      ->add_option("--program", a->program,
                   "The program; without it the one that wrote the checkpoint, beside lockstep")
      ->type_name("PATH");
  command->callback([a, predicts] { use(*a, predicts); });
  return command;
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  add_command(app, "evaluate", "Evaluate a checkpoint, with the program that wrote it", kEvaluateHelp, false);
}

void add_predict_command(CLI::App& app) {
  add_command(app, "predict", "Write the predictions of a checkpoint's model to a file", kPredictHelp, true);
}

}  // namespace lockstep::tools
