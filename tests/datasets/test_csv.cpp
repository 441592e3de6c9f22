#include "data/datasets/csv.h"

#include <cmath>
#include <memory>
#include <tuple>

#include "data/datasets/catalogue.h"
#include "data/datasets/csv_text.h"
#include "data/datasets/fill_missing.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;

std::string write_text(const TempDir& dir, const std::string& name, const std::string& text) {
  return dir.write(name, Bytes(text.begin(), text.end())).string();
}

std::vector<float> floats(const Dataset& set, std::int64_t index, std::size_t field = 0) {
  const Bytes bytes = sample_of(set, index)[field];
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::int32_t label_of(const Dataset& set, std::int64_t index) {
  return value_of<std::int32_t>(sample_of(set, index).back());
}

constexpr const char* kTable =
    "id,\"length, mm\",width,kind\n"
    "1,1.5,+2,cat\r\n"
    "2,\"-1e3\",.25,\"big \"\"dog\"\"\"\n"
    "\n"
    "3, 7 ,0,cat";

TEST(Csv, ReadsColumnsByNameAndNumber) {
  const TempDir dir;
  const std::string file = write_text(dir, "a.csv", kTable);
  const CsvDataset set({.files = {file}, .inputs = {"width", "length, mm"}, .targets = {"0"}, .label = "kind"});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(
      set.fields(),
      (std::vector<Field>{{"input", {2}, DType::F32}, {"target", {1}, DType::F32}, {"label", Shape{}, DType::I32}}));
  EXPECT_EQ(floats(set, 0), (std::vector<float>{2, 1.5F}));
  EXPECT_EQ(floats(set, 1), (std::vector<float>{0.25F, -1000}));
  EXPECT_EQ(floats(set, 2), (std::vector<float>{0, 7}));
  EXPECT_EQ(floats(set, 2, 1), (std::vector<float>{3}));
  EXPECT_EQ(set.class_names(), (std::vector<std::string>{"big \"dog\"", "cat"}));
  EXPECT_EQ(set.classes(), 2);
  EXPECT_EQ(label_of(set, 0), 1);
  EXPECT_EQ(label_of(set, 1), 0);
  EXPECT_EQ(set.input_names(), (std::vector<std::string>{"width", "length, mm"}));
  const CsvDataset rest({.files = {file}, .inputs = {"*"}, .label = "kind"});
  EXPECT_EQ(rest.input_names(), (std::vector<std::string>{"id", "length, mm", "width"}));
}

TEST(Csv, ReadsFilesWithoutHeaderAndOtherSeparators) {
  const TempDir dir;
  write_text(dir, "p1.csv",
             "\xEF\xBB\xBF"
             "1;2;0\n3;4;1\n");
  write_text(dir, "p2.csv", "5;6;10\n");
  const CsvDataset set({.files = {"p*.csv"},
                        .dir = dir.path(),
                        .inputs = {"1"},
                        .targets = {"0"},
                        .label = "2",
                        .header = false,
                        .separator = ';',
                        .dtype = DType::F64});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(value_of<double>(sample_of(set, 0)[1]), 1);
  EXPECT_EQ(value_of<double>(sample_of(set, 2)[0]), 6);
  EXPECT_EQ(set.classes(), 11);  // numbers are the classes themselves
  EXPECT_EQ(label_of(set, 2), 10);
  const CsvDataset packed({.files = {dir.write("z.csv.gz", gzip({'x', '\n', '4', '\n'})).string()}, .inputs = {"x"}});
  EXPECT_EQ(floats(packed, 0)[0], 4);
}

TEST(Csv, GivenClassesKeepTheirNumbers) {
  const TempDir dir;
  const std::string file = write_text(dir, "a.csv", "x,c\n1,b\n2,c\n");
  const CsvDataset set({.files = {file}, .inputs = {"x"}, .label = "c", .classes = {"c", "a", "b"}});
  EXPECT_EQ(set.classes(), 3);
  EXPECT_EQ(label_of(set, 0), 2);
  EXPECT_EQ(label_of(set, 1), 0);
  expect_error([&] { CsvDataset({.files = {file}, .inputs = {"x"}, .label = "c", .classes = {"b"}}); },
               {"a.csv", "line 3", "column 1 ('c')", "class 'c'", "b"});
  expect_error(
      [&] {
        CsvDataset({.files = {file}, .inputs = {"x"}, .label = "c", .classes = {"b", "c", "b"}});
      },
      {"'b' is given twice"});
}

// Numbers of which a block ends in the middle of a quoted field must come out the same.
TEST(Csv, BlocksAndThreadsDoNotChangeTheResult) {
  std::string text = "x,note,c\n";
  for (int i = 0; i < 700; ++i) text += formatted("{},\"line {}\n, \"\"and\"\" more\",k{}\n", i * 0.5, i, i % 7);
  const TempDir dir;
  const std::string file = write_text(dir, "a.csv", text);
  const CsvDataset whole({.files = {file}, .inputs = {"x"}, .label = "c"});
  ASSERT_EQ(whole.size(), 700);
  for (const std::size_t block : {std::size_t{1}, std::size_t{50}, std::size_t{977}}) {
    for (const int threads : {1, 3}) {
      const CsvDataset set({.files = {file}, .inputs = {"x"}, .label = "c", .threads = threads, .block = block});
      ASSERT_EQ(set.size(), 700);
      EXPECT_EQ(set.class_names(), whole.class_names());
      for (std::int64_t i = 0; i < 700; ++i) ASSERT_EQ(sample_of(set, i), sample_of(whole, i)) << i;
    }
  }
  const CsvDataset parallel({.files = {file}, .inputs = {"x"}, .label = "c", .threads = 5});
  for (std::int64_t i = 0; i < 700; ++i) ASSERT_EQ(sample_of(parallel, i), sample_of(whole, i)) << i;
}

TEST(Csv, MissingValuesAreAnErrorOrReplaced) {
  const TempDir dir;
  const std::string file = write_text(dir, "a.csv", "x,y\n1,\nNA,3\n,nan\n");
  expect_error(
      [&] {
        CsvDataset({.files = {file}, .inputs = {"x", "y"}});
      },
      {"a.csv", "line 2, column 1 ('y')", "missing"});
  expect_error([&] { CsvDataset({.files = {file}, .inputs = {"x"}}); }, {"line 3, column 0 ('x')", "'NA'"});
  const CsvDataset set({.files = {file}, .inputs = {"x", "y"}, .missing = -1});
  EXPECT_EQ(floats(set, 0), (std::vector<float>{1, -1}));
  EXPECT_EQ(floats(set, 1), (std::vector<float>{-1, 3}));
  EXPECT_EQ(floats(set, 2), (std::vector<float>{-1, -1}));
  EXPECT_EQ(std::tuple(set.gaps().left_out, set.gaps().replaced), std::tuple(0, 4));
}

TEST(Csv, RecordsWithMissingValuesAreLeftOutAndCounted) {
  const TempDir dir;
  std::string text = "x,y,c\n";
  for (const char* missing : {"", "NA", "nan", "#N/A", "<NA>", "None", "n/a"})
    text += formatted("{},1,a\n1,{},a\n", missing, missing);
  text += "5,6,b\n7,8,\n9,10,NaN\n11,12,\"NA\"\n13,14,None\n";
  const std::string file = write_text(dir, "a.csv", text);
  for (const int threads : {1, 3}) {
    const CsvDataset set({.files = {file},
                          .inputs = {"x"},
                          .targets = {"y"},
                          .label = "c",
                          .skip_missing = true,
                          .threads = threads,
                          .block = 20});
    ASSERT_EQ(set.size(), 3);
    EXPECT_EQ(floats(set, 0)[0], 5);
    EXPECT_EQ(floats(set, 2)[0], 13);
    EXPECT_EQ(set.class_names(), (std::vector<std::string>{"NA", "None", "b"}));
    EXPECT_EQ(set.gaps().left_out, 16);
    EXPECT_NE(set.gaps().first.find("a.csv, line 2, column 0 ('x')"), std::string::npos) << set.gaps().first;
    const CsvDataset some({.files = {file},
                           .inputs = {"x"},
                           .targets = {"y"},
                           .missing = std::nan(""),
                           .skip_missing = true,
                           .threads = threads});
    ASSERT_EQ(some.size(), 12) << "a record without its target is left out, one without an input is not";
    EXPECT_TRUE(std::isnan(floats(some, 0)[0]));
    EXPECT_EQ(std::tuple(some.gaps().left_out, some.gaps().replaced), std::tuple(7, 7));
    const FilledDataset filled(std::make_shared<CsvDataset>(some), "input", means_of(some, "input"));
    EXPECT_EQ(floats(filled, 0)[0], (5 + 7 + 9 + 11 + 13) / 5.0F);
    EXPECT_EQ(floats(filled, 11)[0], 13);
  }
  expect_error([&] { CsvDataset({.files = {file}, .inputs = {"2"}, .skip_missing = true}); }, {"'a'", "a number"});
  expect_error(
      [&] {
        CsvDataset({.files = {write_text(dir, "b.csv", "x\n\n\"\"\nNA\n")}, .inputs = {"x"}, .skip_missing = true});
      },
      {"no records but 2 with missing cells, the first is ", "b.csv, line 3"});
  expect_error([&] { CsvDataset({.files = {file}, .inputs = {"x"}, .advice = "; try this"}); },
               {"expected a number; try this"});
}

// The evaluation has the same columns in another order, and one more.
TEST(Csv, AllColumnsAreThoseOfTheTrainingInAnyOrder) {
  const TempDir dir;
  write_text(dir, "train.csv", "a,b,y\n1,2,3\n4,5,6\n");
  write_text(dir, "eval.csv", "b,more,a,y\n20,0,10,30\n");
  DatasetOptions o{.name = "csv", .dir = dir.path()};
  o.fields.files = "train.csv";
  o.fields.eval_files = "eval.csv";
  o.fields.inputs = "*";
  o.fields.targets = "y";
  RunData data = open_data(field_catalogue(), o);
  EXPECT_EQ(floats(*data.train, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(*data.eval, 0), (std::vector<float>{10, 20}));
  EXPECT_EQ(floats(*data.eval, 0, 1), (std::vector<float>{30}));
  prepare_data(field_catalogue(), o, data);
  const std::string record = data.prediction.record;

  DatasetOptions predict = o;
  predict.purpose = Purpose::Predict;
  predict.record = &record;
  predict.fields.files = "eval.csv";
  predict.fields.eval_files = "";
  EXPECT_EQ(floats(*open_data(field_catalogue(), predict).train, 0), (std::vector<float>{10, 20}));
}

TEST(Csv, MistakesNameFileLineAndColumn) {
  struct Row {
    std::string text;
    std::vector<std::string> parts;
  };
  const std::string many = [] {
    std::string text = "x,y\n";
    for (int i = 0; i < 500; ++i) text += i == 400 || i == 499 ? "1,b\n" : "1,2\n";
    return text;
  }();
  for (const Row& row :
       {Row{"x,y\n1\n", {"line 2", "1 columns, expected 2"}}, Row{"x,y\n1,2,3\n", {"line 2", "3 columns"}},
        Row{"x,y\n1,two\n", {"line 2, column 1 ('y')", "'two', expected a number"}}, Row{"x,y\n1,2 3\n", {"'2 3'"}},
        Row{"x,y\n1,0x10\n", {"'0x10'"}}, Row{"x,y\n1,+-2\n", {"'+-2'"}},
        Row{"x,y\n1,1e999\n", {"'1e999'", "finite number that f32 holds"}}, Row{"x,y\n1,1e39\n", {"'1e39'", "f32"}},
        Row{"x,y\n1,inf\n", {"'inf'", "finite"}}, Row{"x,y\n1,a\"b\"\n", {"line 2, column 1", "quote inside"}},
        Row{"x,y\n1,a\"b\n3,4\n", {"line 2", "not closed"}},
        Row{"x,y\n1,\"a\"b\n", {"line 2, column 1", "after the closing quote"}},
        Row{"x,y\n1,2\n1,\"2\n1,2\n", {"line 3", "not closed"}},
        Row{"x,y,n\n1,2,\"a\nb\"\n3,z,c\n", {"line 4, column 1 ('y')"}},
        Row{"x,z\n1,2\n", {"no column 'y'", "0 ('x'), 1 ('z')"}}, Row{"y,x,y\n1,2,3\n", {"2 columns are called 'y'"}},
        Row{"", {"no records"}}, Row{"x,y\n", {"no records"}}, Row{many, {"line 402, column 1 ('y')", "'b'"}}}) {
    const TempDir dir;
    const std::string file = write_text(dir, "a.csv", row.text);
    expect_error([&] { CsvDataset({.files = {file}, .inputs = {"x", "y"}, .threads = 4}); }, row.parts);
  }
  const TempDir dir;
  write_text(dir, "1.csv", "x,y\n1,2\n");
  write_text(dir, "2.csv", "x,z\n1,2\n");
  expect_error([&] { CsvDataset({.files = {"?.csv"}, .dir = dir.path(), .inputs = {"*"}}); },
               {"2.csv", "column 1 is 'z'", "'y' in the first file"});
  expect_error([&] { CsvDataset({.files = {"1.csv"}, .dir = dir.path(), .inputs = {"7"}}); }, {"no column '7'"});
  expect_error([&] { CsvDataset({.files = {"1.csv"}, .dir = dir.path(), .inputs = {}}); }, {"no inputs"});
  const CsvDataset small({.files = {write_text(dir, "s.csv", "x\n1e-400\n-1e-60\n")}, .inputs = {"x"}});
  EXPECT_EQ(floats(small, 0)[0], 0);
  EXPECT_EQ(floats(small, 1)[0], 0);
}

TEST(CsvText, SplitsRecordsAndCells) {
  std::vector<CsvRecord> records;
  std::int64_t line = 1;
  const std::string block = "a,\"b\nc\"\r\n\nd\ne,\"f";
  EXPECT_EQ(split_records("t", block, false, line, records), block.find("e,"));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].text, "a,\"b\nc\"");
  EXPECT_EQ(records[1].text, "d");
  EXPECT_EQ(records[1].line, 4);
  EXPECT_EQ(line, 5);
  std::vector<CsvCell> cells;
  std::string unquoted;
  split_cells("t", {.text = "\"a\"\"b\",,\"\"\"\",\"\",x,", .line = 1}, ',', cells, unquoted);
  std::vector<std::string> texts;
  for (const CsvCell& cell : cells) texts.emplace_back(cell.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"a\"b", "", "\"", "", "x", ""}));
  EXPECT_TRUE(cells[3].quoted);
  EXPECT_FALSE(cells[1].quoted);
}

}  // namespace
}  // namespace lockstep::datasets
