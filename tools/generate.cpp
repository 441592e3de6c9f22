#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "data/datasets/tokenizer.h"
#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/train/options/option_checks.h"
#include "lockstep/train/report/json_text.h"
#include "lockstep/train/report/result_line.h"
#include "models/gpt_options.h"
#include "models/zoo/gpt_sampler.h"
#include "tools/commands.h"
#include "tools/usage.h"

namespace lockstep::tools {
namespace {

constexpr std::string_view kSite = "generate";

constexpr const char* kGenerateHelp = R"(Examples:
  lockstep generate runs/train_gpt --prompt "Ann sees" --tokens 200
  lockstep generate runs/books --vocabulary gpt2/ --temperature 0.8 --top-p 0.95 --seed 7

The checkpoint is one of train_gpt, which has the options of its model. Without --prompt a document begins. The text ends
after --tokens, or with the document. The same seed gives the same text. A text longer than the model's context goes on
with the last half of the context, which is read again. --json prints prompt, text, tokens and seconds as an object when
the text has ended; bytes that are no UTF-8 are replaced there.)";

struct GenerateOptions {
  std::string named, prompt, vocabulary;
  std::int64_t tokens = 256;
  models::SamplingOptions sampling;
  std::uint64_t seed = 1;
  bool json = false;
};

// Sets an option of the model to what the checkpoint has.
template <class T>
void take(const nlohmann::json& options, const std::string& name, T& value, const std::string& file) {
  const auto found = options.find(name);
  check(found != options.end(), kSite, "{}: it has no option '{}', expected a checkpoint of train_gpt", file, name);
  try {
    if constexpr (std::is_enum_v<T>) {
      const auto text = found->template get<std::string>();
      check(train::Choice(&value).set(text), kSite, "{}: its option '{}' is '{}', which is not known", file, name,
            text);
    } else {
      value = found->template get<T>();
    }
  } catch (const nlohmann::json::exception& error) {
    fail(kSite, "{}: its option '{}' cannot be used: {}", file, name, error.what());
  }
}

models::GptOptions options_of(const checkpoint::WeightsSource& source) {
  const std::string file = source.file.string();
  const nlohmann::json metadata = train::parse_json(source.metadata);
  check(metadata.is_object() && metadata.contains("options") && metadata["options"].is_object(), kSite,
        "{}: it has no record of a run's options, expected a checkpoint of train_gpt", file);
  models::GptOptions options;
  models::for_each_option(options,
                          [&](const char* name, auto& value, const char* /*text*/, const char* /*argument*/ = "") {
                            take(metadata["options"], name, value, file);
                          });
  return options;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void generate(const GenerateOptions& o) {
  check_usage([&] {
    check(o.tokens >= 1, kSite, "--tokens is {}, expected at least 1", o.tokens);
    models::check_sampling(o.sampling);
  });
  const checkpoint::WeightsSource source = checkpoint::find_weights(o.named);
  const models::GptOptions options = options_of(source);
  const auto tokenizer = datasets::open_tokenizer(o.vocabulary.empty() ? options.text.vocabulary : o.vocabulary);
  datasets::check_tokenizer(source.file.string(), *tokenizer,
                            train::parse_json(source.metadata).value("data", nlohmann::json()).dump());
  const models::Gpt network(options.config(tokenizer->size()));
  models::GptSampler sampler(network);
  sampler.load(source.file);

  std::vector<std::int32_t> prompt{tokenizer->end_of_text()};
  tokenizer->encode_documents(o.prompt, prompt);
  if (!o.json) print(o.prompt);
  std::string written;
  RandomStream random(mix(o.seed, hash_name("generate")), 0);
  const auto began = std::chrono::steady_clock::now();
  std::span<const float> logits = sampler.start(prompt);
  std::int64_t made = 0;
  while (made < o.tokens) {
    const std::int32_t token = models::sample_token(logits, o.sampling, random.uniform());
    ++made;
    if (token == tokenizer->end_of_text()) break;
    written += tokenizer->text(token);
    if (!o.json) print(tokenizer->text(token));
    if (made < o.tokens) logits = sampler.next(token);
  }
  if (!o.json) print("\n");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  fmt::print(stderr, "generate: {} tokens behind {} of the prompt; {:.1f} tokens/s\n", made, prompt.size(),
             static_cast<double>(made) / std::max(seconds, 1e-9));
  if (!o.json) return;
  train::print_result({{"prompt", o.prompt},
                       {"text", written},
                       {"tokens", made},
                       {"prompt_tokens", prompt.size()},
                       {"seconds", seconds}});
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "Write text with a checkpoint of train_gpt");
  command->footer(kGenerateHelp);
  auto o = std::make_shared<GenerateOptions>();
  command
      ->add_option("weights", o->named, "A checkpoint, or the folder of a run, whose newest whole checkpoint is taken")
      ->required()
      ->type_name("CHECKPOINT|RUN");
  command->add_option("--prompt", o->prompt, "The beginning of the text")->type_name("TEXT");
  command->add_option("--tokens", o->tokens, "Tokens to write at most")
      ->check(train::whole_number<std::int64_t>)
      ->capture_default_str();
  command->add_option("--temperature", o->sampling.temperature, "Divides the logits; 0: always the likeliest token")
      ->check([](const std::string& text) { return train::any_number(text); })
      ->capture_default_str();
  command->add_option("--top-k", o->sampling.top_k, "Only the N likeliest tokens; 0: all")
      ->check(train::whole_number<std::int64_t>)
      ->capture_default_str();
  command->add_option("--top-p", o->sampling.top_p, "Only the likeliest tokens that together have this probability")
      ->check([](const std::string& text) { return train::any_number(text); })
      ->capture_default_str();
  command->add_option("--seed", o->seed, "Seed of the choices")
      ->check(train::whole_number<std::uint64_t>)
      ->capture_default_str();
  command->add_option("--vocabulary", o->vocabulary, "The run's vocabulary, where it has moved")->type_name("PATH");
  command->add_flag("--json", o->json, "One JSON object: prompt, text, tokens, prompt_tokens, seconds");
  command->callback([o] { generate(*o); });
}

}  // namespace lockstep::tools
