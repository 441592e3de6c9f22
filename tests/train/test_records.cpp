// The files of --logger: TensorBoard's records, the table and Prometheus' text, and what a resume makes of them.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lockstep/core/error.h"
#include "lockstep/train/report/patient_file.h"
#include "lockstep/train/report/record_files.h"
#include "tests/messages.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class RecordsTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    fs::create_directories(folder_);
  }
  std::shared_ptr<const io::Folder> output() const { return std::make_shared<const io::Folder>(folder_); }
  static MetricsRecord record(std::int64_t step, double loss) {
    return {.step = step, .epoch = 1, .loss = loss, .metrics = {{.name = "accuracy", .results = {0.5}}}, .lr = 0.1};
  }
  static std::vector<MetricRule> rules() {
    return {{.name = "accuracy"}, {.name = "a,\"b"}, {.name = "by_class", .results = 3}};
  }
};

TEST(Records, NamesOfFilesAreReadAndOthersRefused) {
  const RecordKinds both = record_kinds("csv,tensorboard");
  EXPECT_TRUE(both.csv && both.tensorboard && !both.dllogger && !both.prometheus);
  const RecordKinds none = record_kinds("none");
  EXPECT_FALSE(none.csv || none.tensorboard || none.dllogger || none.prometheus);
  for (const char* wrong : {"", "tensorbord", "csv,", "csv,none", " csv"}) EXPECT_THROW(record_kinds(wrong), Error);
}

TEST(Records, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);            // the check value of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  const std::string bytes = event_record("abc");
  EXPECT_EQ(bytes.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(12, 3), "abc");
}

TEST(Records, MessagesAreEncodedAsProtocolBuffersPublishes) {
  ProtobufMessage inner, message;
  inner.add_int(1, 150);  // the example of the encoding's own guide
  EXPECT_EQ(inner.bytes(), std::string("\x08\x96\x01", 3));
  message.add_text(2, "testing");
  EXPECT_EQ(message.bytes(), std::string("\x12\x07testing", 9));
  ProtobufMessage outer;
  outer.add_message(3, inner);
  EXPECT_EQ(outer.bytes(), std::string("\x1a\x03\x08\x96\x01", 5));
  ProtobufMessage negative;
  negative.add_int(1, -1);  // ten bytes, as int64
  EXPECT_EQ(negative.bytes(), std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
}

TEST_F(RecordsTest, ATableHasOneHeaderAndARowForEachRecord) {
  {
    CsvRecords table(output(), {}, true);
    table.begin(rules());
    table.write(record(1, 2.5));
    MetricsRecord other = record(2, std::nan(""));
    other.extra = {{"slowest_rank", 3}, {"compute_seconds", 0.25}};
    table.write(other);
  }
  const auto lines = lines_of(read(folder_ / "metrics.csv"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(
      lines[0].starts_with("step,epoch,split,loss,lr,samples_per_second,seconds,accuracy,\"a,\"\"b\",compute_seconds,"))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("1,1,train,2.5,0.1,0,0,0.5,,,")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("2,1,train,nan,0.1,0,0,0.5,,0.25,")) << lines[2];
  EXPECT_EQ(std::ranges::count(lines[1], ','), std::ranges::count(lines[0], ',') - 1) << "one comma is in a name";
}

TEST_F(RecordsTest, AResumedTableHasEachStepOnceAndRefusesOtherColumns) {
  {
    CsvRecords table(output(), {}, true);
    table.begin(rules());
    for (int step = 1; step <= 4; ++step) table.write(record(step, 1));
  }
  std::ofstream(folder_ / "metrics.csv", std::ios::app) << "5,1,tra";  // a kill cut the line
  {
    CsvRecords table(output(), 2, true);
    table.begin(rules());
    for (int step = 3; step <= 4; ++step) table.write(record(step, 2));
  }
  std::string steps;
  for (const std::string& line : lines_of(read(folder_ / "metrics.csv"))) steps += line.substr(0, line.find(',')) + " ";
  EXPECT_EQ(steps, "step 1 2 3 4 ");
  CsvRecords table(output(), 4, true);
  EXPECT_THROW(table.begin(std::vector<MetricRule>{{.name = "other"}}), Error);
}

// A start that cannot continue the table leaves all files of the run as they are.
TEST_F(RecordsTest, OtherColumnsAreRefusedBeforeAFileIsChanged) {
  {
    CsvRecords table(output(), {}, true);
    table.begin(rules());
    for (int step = 1; step <= 4; ++step) table.write(record(step, 1));
  }
  const std::string before = read(folder_ / "metrics.csv");
  const std::vector<MetricRule> other{{.name = "other"}};
  const auto error = [&](const RecordKinds& kinds, const std::vector<MetricRule>& metrics, bool continues) {
    return error_of([&] { RecordFiles::check_files(*output(), kinds, metrics, continues); });
  };
  EXPECT_NE(error({.csv = true}, other, true).find("metrics.csv has the columns 'step,"), std::string::npos);
  EXPECT_EQ(error({.csv = true}, rules(), true), "no error");
  EXPECT_EQ(error({.csv = true}, other, false), "no error") << "a new run sets the file aside";
  EXPECT_EQ(error({}, other, true), "no error") << "no row is written";
  EXPECT_EQ(read(folder_ / "metrics.csv"), before);
  std::ofstream(folder_ / "metrics.csv") << "step,epoch,spl";  // a kill cut the first line
  EXPECT_EQ(error({.csv = true}, other, true), "no error");
}

// Rows that waited for a full disk come behind the header of a file that takes the place of the removed one.
TEST_F(RecordsTest, ATableThatWasRemovedBeginsWithItsHeader) {
  CsvRecords table(output(), {}, true);
  table.begin(rules());
  for (const int step : {1, 2}) {
    fs::remove(folder_ / "metrics.csv");
    table.follow(output());
    table.write(record(step, 1));
  }
  const auto lines = lines_of(read(folder_ / "metrics.csv"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("step,")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("2,")) << lines[1];
}

TEST_F(RecordsTest, TheFirstRecordOfANewFileComesBeforeThoseThatWait) {
  const auto opened = [&](const fs::path& path, int flags) {
    return io::FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  };
  {
    PatientFile file("test", "line");
    file.open(opened("/dev/full", O_WRONLY), "/dev/full");
    file.append("1\n");
    file.append("2\n");
    file.open(opened(folder_ / "new", O_WRONLY | O_CREAT | O_APPEND), folder_ / "new");
    file.prepend("header\n");
    file.append("3\n");
  }
  EXPECT_EQ(read(folder_ / "new"), "header\n1\n2\n3\n");
}

TEST_F(RecordsTest, PrometheusGetsTheNewestValuesInItsForm) {
  {
    PrometheusFile file(output(), true);
    file.name_run("r\"1\\\n");
    file.write(record(1, 2.5));
    file.write(record(2, std::nan("")));
  }
  const std::string text = read(folder_ / "metrics.prom"), run = R"(run="r\"1\\\n")";
  for (const std::string& line :
       {std::string("# TYPE lockstep_loss gauge"), "lockstep_loss{" + run + ",split=\"train\"} NaN",
        "lockstep_updates_total{" + run + "} 2",
        "lockstep_metric{" + run + ",split=\"train\",metric=\"accuracy\"} 0.5"})
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), text.npos) << line << "\n" << text;
  { PrometheusFile(output(), false); }
  EXPECT_FALSE(fs::exists(folder_ / "metrics.prom")) << "of an earlier run";
}

TEST_F(RecordsTest, ANewRunMovesEventFilesAsideAndAResumedOneAddsAFile) {
  const auto files = [&](const char* name) {
    return std::distance(fs::directory_iterator(folder_ / name), fs::directory_iterator());
  };
  { TensorboardWriter(output(), {}, true).scalars(record(1, 2.5)); }
  EXPECT_EQ(files("tensorboard"), 1);
  {
    TensorboardWriter first(output(), 1, false);
    EXPECT_FALSE(first.enabled());
  }
  EXPECT_EQ(files("tensorboard"), 1);
  { TensorboardWriter(output(), {}, true); }
  EXPECT_EQ(files("tensorboard"), 1);
  EXPECT_EQ(files("tensorboard.1"), 1);
}

}  // namespace
}  // namespace lockstep::train
