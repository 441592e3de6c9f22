// The table of options: what holds for every row.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/train/options/near_names.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/options/options_table.h"
#include "tests/train/option_support.h"

// Headers of options are for every program: what reads and writes texts stays in the library.
#ifdef CLI11_VERSION
#error "a header of options includes CLI11"
#endif

namespace lockstep::train {
namespace {

enum class Colour : std::uint8_t { Red, DarkBlue };

}  // namespace

template <>
struct Choices<Colour> {
  static constexpr std::array kAll{NamedValue{Colour::Red, "red"}, NamedValue{Colour::DarkBlue, "dark-blue"}};
};

namespace {

TEST(OptionRows, NamesAreDistinctAndWritten) {
  Options options;
  std::set<std::string> names;
  for (const OptionRow& row : option_rows(options)) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.text.empty()) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << row.name;
    const bool flag = std::holds_alternative<bool*>(row.value) || std::holds_alternative<Negated>(row.value);
    EXPECT_EQ(argument_of(row).empty(), flag) << row.name;
    const bool number = argument_of(row) == "N" || argument_of(row) == "X" || argument_of(row) == "NAME";
    EXPECT_TRUE(row.argument.empty() || !number || row.argument == argument_of(row))
        << row.name << " has " << row.argument << ", which --help does not show";
  }
}

// Two rows that set one variable would overwrite each other.
TEST(OptionRows, EachHasAVariableOfItsOwn) {
  Options options;
  std::set<const void*> variables;
  std::size_t count = 0;
  for (const OptionRow& row : option_rows(options)) {
    if (const auto* negated = std::get_if<Negated>(&row.value)) {
      variables.insert(negated->variable);
    } else if (std::holds_alternative<Choice>(row.value)) {
      continue;
    } else {
      std::visit(
          [&]<class T>(const T& value) {
            if constexpr (std::is_pointer_v<T>) variables.insert(value);
          },
          row.value);
    }
    ++count;
  }
  EXPECT_EQ(variables.size(), count);
}

TEST(OptionRows, EveryNameOfAnEnumerationIsReadAndWrittenBack) {
  Options options;
  for (const OptionRow& row : option_rows(options)) {
    const auto* choice = std::get_if<Choice>(&row.value);
    if (choice == nullptr) continue;
    EXPECT_GE(names_of(row).size(), 2u) << row.name;
    for (const std::string& name : names_of(row)) {
      EXPECT_TRUE(choice->set(name)) << row.name;
      EXPECT_EQ(choice->name(), name) << row.name;
      EXPECT_EQ(to_json(options).at(row.name), name);
    }
    EXPECT_FALSE(choice->set("no such name")) << row.name;
  }
}

TEST(OptionRows, AnUnknownNameIsRefusedWithTheNamesAndTheNearest) {
  EXPECT_EQ(parse_line({"--schedule", "cosin"}).result.message,
            "[options] --schedule is 'cosin', expected one of constant, step, cosine, one-cycle, cosine-restarts, "
            "polynomial, exponential, inverse-sqrt, plateau; did you mean cosine?");
  EXPECT_EQ(parse_line({"--wire", "int8"}).result.message,
            "[options] --wire is 'int8', expected one of f32, bf16, f16");
  Options options;
  for (const OptionRow& row : option_rows(options)) {
    if (!std::holds_alternative<Choice>(row.value)) continue;
    const std::string option = "--" + row.name;
    const Outcome o = parse_line({option.c_str(), "bogus"});
    EXPECT_EQ(o.result.exit_code, 2);
    EXPECT_TRUE(has(o.err, option + " is 'bogus', expected one of ")) << o.err;
  }
  // As of all options the last one counts, and --help is answered whatever else is there.
  EXPECT_TRUE(parse_line({"--wire", "int8", "--wire", "bf16"}).result.proceed);
  EXPECT_EQ(parse_line({"--wire", "int8", "--help"}).result.exit_code, 0);
}

// The part of --help about one option, without line breaks.
std::string help_of(const std::string& help, const std::string& option) {
  const std::size_t begin = help.find("  --" + option + " "), end = help.find("(default", begin);
  EXPECT_NE(begin, std::string::npos) << option;
  std::istringstream words(begin == std::string::npos ? "" : help.substr(begin, end - begin));
  std::string all, word;
  while (words >> word) all += word + " ";
  return all;
}

TEST(OptionRows, HelpHasTheNamesOfEveryEnumeration) {
  const std::string help = parse_line({"--help"}).out;
  Options options;
  for (const OptionRow& row : option_rows(options)) {
    const std::vector<std::string> names = names_of(row);
    const std::string text = names.empty() ? "" : help_of(help, row.name);
    for (const std::string& name : names) EXPECT_TRUE(has(text, name)) << name << " is not in: " << text;
  }
  Colour colour = Colour::Red, named = Colour::DarkBlue;
  std::string model = "mlp";
  CommandLine line(options, "train_test", "trains", "1");
  line.add({.name = "colour", .value = option_value(colour), .text = "of the tiles"});
  line.add({.name = "named", .value = option_value(named), .text = "red or dark-blue tiles"});
  line.add({.name = "model", .value = option_value(model), .text = "it", .names = {"mlp", "cnn"}});
  const char* arguments[] = {"train_test", "--help"};
  std::ostringstream out, err;
  EXPECT_FALSE(line.parse(2, arguments, true, out, err).proceed);
  EXPECT_EQ(help_of(out.str(), "colour"), "--colour NAME of the tiles; one of red, dark-blue ");
  EXPECT_EQ(help_of(out.str(), "named"), "--named NAME red or dark-blue tiles ") << "the names are there already";
  EXPECT_EQ(help_of(out.str(), "model"), "--model NAME it; one of mlp, cnn ");
}

TEST(OptionRows, ANameInOtherLettersIsRefusedWithTheRightOne) {
  for (const auto& [option, given, meant] : {std::tuple{"--optimizer", "RMSProp", "rmsprop"},
                                             {"--optimizer", "RMS_prop", "rmsprop"},
                                             {"--optimizer", "rmsporp", "rmsprop"},
                                             {"--optimizer", "SGD", "sgd"},
                                             {"--optimizer", "AdamW", "adamw"},
                                             {"--schedule", "One_Cycle", "one-cycle"},
                                             {"--precision", "BF16", "bf16"}}) {
    const std::string message = parse_line({option, given}).result.message;
    EXPECT_TRUE(message.ends_with(std::string("; did you mean ") + meant + "?")) << message;
  }
  Options options;
  Colour colour = Colour::Red;
  CommandLine line(options, "train_test", "trains", "1");
  line.add({.name = "colour", .value = option_value(colour), .text = "of the tiles"});
  const char* arguments[] = {"train_test", "--colour", "Dark_Blue"};
  std::ostringstream out, err;
  EXPECT_EQ(line.parse(3, arguments, true, out, err).message,
            "[options] --colour is 'Dark_Blue', expected one of red, dark-blue; did you mean dark-blue?");
}

TEST(OptionRows, AProgramsOwnOptionIsOneOfItsNames) {
  Options options;
  std::string model = "mlp";
  CommandLine line(options, "train_test", "trains", "1");
  line.add({.name = "model", .value = option_value(model), .names = {"mlp", "convnet"}});
  line.check([] { throw Error("never both"); });
  const char* arguments[] = {"train_test", "--model", "convnett"};
  std::ostringstream out, err;
  EXPECT_TRUE(has(line.parse(3, arguments, true, out, err).message, "never both"));

  Options others;
  CommandLine alone(others, "train_test", "trains", "1");
  alone.add({.name = "model", .value = option_value(model), .names = {"mlp", "convnet"}});
  EXPECT_EQ(alone.parse(3, arguments, true, out, err).message,
            "[options] --model is 'convnett', expected one of mlp, convnet; did you mean convnet?");
}

// A program has the options that one of its data sets reads; with a data set that ignores one, its value may not
// change.
TEST(OptionRows, AreThoseOfTheProgramsDataSets) {
  const std::vector<data::DatasetEntry> sets{
      {.name = "arrays", .kind = data::DatasetKind::Fields, .ignores = {"series", "missing", "label-smoothing"}},
      {.name = "tables", .kind = data::DatasetKind::Fields, .ignores = {"series", "label-smoothing"}}};
  std::ostringstream out, err;
  const auto parsed = [&](std::vector<const char*> arguments) {
    Options options{.dataset = {.name = "tables"}};
    CommandLine line(options, "train_test", "trains", "1", sets);
    arguments.insert(arguments.begin(), "train_test");
    return line.parse(static_cast<int>(arguments.size()), arguments.data(), true, out, err);
  };
  EXPECT_EQ(parsed({"--help"}).exit_code, 0);
  for (const char* here : {"--missing", "--files", "--mean", "--epochs"})
    EXPECT_NE(out.str().find(std::string("  ") + here + " "), std::string::npos) << here;
  for (const char* absent : {"--series", "--label-smoothing", "--augment", "--crop-scale", "--reservoir"}) {
    EXPECT_EQ(out.str().find(std::string("  ") + absent), std::string::npos) << absent;
    EXPECT_TRUE(has(parsed({absent, "1"}).message, std::string("unknown option ") + absent));
  }
  EXPECT_TRUE(parsed({"--missing", "skip"}).proceed);
  EXPECT_TRUE(parsed({"--dataset", "arrays", "--missing", "error"}).proceed) << "its default";
  EXPECT_EQ(parsed({"--missing", "skip", "--dataset", "arrays"}).message,
            "[options] --missing is skip, which --dataset arrays does not read; it is for tables");
}

TEST(OptionRows, AFlagThatTurnsSomethingOffCanBeTakenBack) {
  Options options;
  EXPECT_FALSE(parse_line({"--no-share-weights"}).options.trainer.parallel.share_weights);
  EXPECT_TRUE(parse_line({}).options.trainer.parallel.share_weights);
  options.trainer.parallel.share_weights = false;
  EXPECT_EQ(to_json(options).at("no-share-weights"), true);
  EXPECT_EQ(to_json(Options{}).at("no-share-weights"), false);
}

TEST(NearestName, IsAFewLettersAway) {
  const std::vector<std::string> names{"auto", "shared", "hierarchical"};
  EXPECT_EQ(nearest_name("shraed", names), "shared");
  EXPECT_EQ(nearest_name("hierachical", names), "hierarchical");
  EXPECT_EQ(nearest_name("Shared", names), "shared");
  EXPECT_EQ(nearest_name("mpi", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(1000, 'a'), names), "");
}

}  // namespace
}  // namespace lockstep::train
