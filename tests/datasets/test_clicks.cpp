// Samples of click models: what is drawn, what is read from text and arrays, and how ids become rows.
#include <algorithm>
#include <cmath>
#include <map>

#include "data/datasets/click_bags.h"
#include "data/datasets/click_columns.h"
#include "data/datasets/click_data.h"
#include "data/datasets/click_entries.h"
#include "data/datasets/click_negatives.h"
#include "data/datasets/click_record.h"
#include "data/datasets/click_table.h"
#include "data/datasets/synthetic_clicks.h"
#include "lockstep/core/math.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;

template <class T>
std::vector<T> values_in(const Dataset& set, std::int64_t index, std::string_view field) {
  const Bytes bytes = sample_of(set, index)[find_field("test", set.fields(), field)];
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string write_clicks(const TempDir& dir, const std::string& name, const std::string& text) {
  return dir.write(name, Bytes(text.begin(), text.end())).string();
}

TEST(Clicks, AreAFunctionOfSeedAndIndex) {
  const SyntheticClicks set({.samples = 50}), longer({.samples = 80}), other({.samples = 50, .seed = 2});
  const SyntheticClicks eval({.samples = 50, .split = Split::Eval});
  int differ = 0, differ_in_split = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(sample_of(set, i), sample_of(longer, i));
    differ += sample_of(set, i) != sample_of(other, i) ? 1 : 0;
    differ_in_split += sample_of(set, i) != sample_of(eval, i) ? 1 : 0;
  }
  EXPECT_EQ(differ, 50);
  EXPECT_EQ(differ_in_split, 50);
}

TEST(Clicks, FollowTheStatedModel) {
  constexpr std::int64_t kSamples = 20000;
  const SyntheticClicks set({.samples = kSamples, .fields = 3, .ids = 10});
  double expected = 0, variance = 0, clicks = 0, dense = 0, squares = 0;
  std::vector<double> counts(10);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const double p = math::sigmoid(set.score(i));
    expected += p;
    variance += p * (1 - p);
    clicks += static_cast<double>(values_in<float>(set, i, "label")[0]);
    for (const std::int64_t id : values_in<std::int64_t>(set, i, "ids")) ++counts.at(static_cast<std::size_t>(id));
    const auto x = static_cast<double>(values_in<float>(set, i, "dense")[1]);
    dense += x;
    squares += x * x;
  }
  EXPECT_LT(std::abs(clicks - expected), 4 * std::sqrt(variance));
  EXPECT_LT(std::abs(dense / kSamples), 4 / std::sqrt(static_cast<double>(kSamples)));
  EXPECT_NEAR(squares / kSamples, 1, 0.05);
  double all = 0;
  for (int r = 0; r < 10; ++r) all += std::pow(r + 1, -1.05);
  for (int r = 0; r < 10; ++r) {
    const double p = std::pow(r + 1, -1.05) / all;
    EXPECT_LT(std::abs(counts[static_cast<std::size_t>(r)] - 3 * kSamples * p), 4 * std::sqrt(3 * kSamples * p)) << r;
  }
}

TEST(Clicks, BestAucIsTheShareOfPairsThatTheScoreOrders) {
  const SyntheticClicks set({.samples = 300, .dense = 0, .fields = 2, .ids = 3});  // many equal scores
  double won = 0, pairs = 0;
  for (std::int64_t a = 0; a < 300; ++a) {
    for (std::int64_t b = 0; b < 300; ++b) {
      if (values_in<float>(set, a, "label")[0] < 0.5F || values_in<float>(set, b, "label")[0] > 0.5F) continue;
      ++pairs;
      won += set.score(a) > set.score(b) ? 1 : set.score(a) == set.score(b) ? 0.5 : 0;
    }
  }
  EXPECT_NEAR(set.best_auc(), won / pairs, 1e-12);
  expect_error([] { SyntheticClicks({.ids = 1}); }, {"1 ids of a field"});
}

TEST(ClickTables, ReadCriteosText) {
  const TempDir dir;
  std::string text = "1\t0\t-2\t5";
  for (int c = 3; c < 13; ++c) text += "\t";
  text += "\t68fd1e64\t";
  for (int c = 2; c < 26; ++c) text += "\tff";
  text += "\n";
  ClickTableOptions options = criteo_options();
  options.files = {write_clicks(dir, "a.txt", text + "0" + text.substr(1))};
  const ClickTable set(options);
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.fields(), (std::vector<Field>{
                              {"dense", {13}, DType::F32}, {"ids", {26}, DType::I64}, {"label", Shape{}, DType::F32}}));
  const auto dense = values_in<float>(set, 0, "dense");
  EXPECT_EQ(dense[0], 0.0F);
  EXPECT_EQ(dense[1], 0.0F);  // a negative count
  EXPECT_EQ(dense[2], static_cast<float>(math::log(6)));
  EXPECT_EQ(dense[3], 0.0F);  // a missing one
  const auto ids = values_in<std::int64_t>(set, 1, "ids");
  EXPECT_EQ(ids[0], 0x68fd1e64);
  EXPECT_EQ(ids[1], kMissingId);
  EXPECT_EQ(ids[25], 255);
  EXPECT_EQ(values_in<float>(set, 0, "label")[0], 1.0F);
  EXPECT_EQ(values_in<float>(set, 1, "label")[0], 0.0F);
  EXPECT_NE(set.locate(1).find("a.txt, line 2"), std::string::npos);
  const auto refused = [&](const std::string& wrong, const std::string& message) {
    options.files = {write_clicks(dir, "wrong.txt", text + wrong)};
    expect_error([&] { ClickTable{options}; }, {message});
  };
  refused("1\t2\n", "line 2: 2 columns, expected 40");
  refused("2" + text.substr(1), "line 2, column 0: the label is 2");
  refused("1\tx" + text.substr(3), "line 2, column 1: 'x', expected a finite number");
  std::string id = text;
  refused(id.replace(id.find("68fd"), 4, "zzzz"), "line 2, column 14: the id is 'zzzz1e64', expected hexadecimal");
  const auto other = [&](bool labelled, const std::string& first, const std::string& message) {
    options = criteo_options(labelled);
    options.files = {write_clicks(dir, "other.txt", first)};
    expect_error([&] { ClickTable{options}; }, {message});
  };
  other(true, text.substr(2), "line 1: 39 columns, expected 40");  // a file without labels
  other(false, text, "line 1: 40 columns, expected 39");           // whose columns would be one too far to the right
  other(true, "7\t" + text, "line 1: 41 columns, expected 40");
}

TEST(ClickTables, ReadRatingsAndTexts) {
  const TempDir dir;
  ClickTableOptions options = ratings_options(4);
  options.files = {
      write_clicks(dir, "r.csv", "userId,movieId,rating,timestamp\n7,31,2.5,1260759144\n7,\"1029\",4.0,1\n")};
  const ClickTable ratings(options);
  EXPECT_EQ(ratings.id_names(), (std::vector<std::string>{"userId", "movieId"}));
  EXPECT_EQ(values_in<std::int64_t>(ratings, 1, "ids"), (std::vector<std::int64_t>{7, 1029}));
  EXPECT_EQ(values_in<float>(ratings, 0, "label")[0], 0.0F);
  EXPECT_EQ(values_in<float>(ratings, 1, "label")[0], 1.0F);
  const ClickTable texts({.files = {write_clicks(dir, "t.csv", "site,n,y\nwww.a.org,1,0.5\nNA,2,1\n")},
                          .dense = {"n"},
                          .ids = {"site"},
                          .label = "y",
                          .block = 5});
  EXPECT_EQ(values_in<std::int64_t>(texts, 0, "ids")[0], static_cast<std::int64_t>(hash_name("www.a.org") >> 1));
  EXPECT_EQ(values_in<std::int64_t>(texts, 1, "ids")[0], kMissingId);
  expect_error(
      [&] { ClickTable({.files = {write_clicks(dir, "n.csv", "site,y\n-5,1\n")}, .ids = {"site"}, .label = "y"}); },
      {"line 2, column 0 ('site'): the id is -5, expected a number from 0 on"});
}

TEST(ClickTables, AllColumnsAreThoseOfTheTrainingInAnyOrder) {
  const TempDir dir;
  write_clicks(dir, "train.csv", "a,b,user,y\n1,2,3,1\n4,5,6,0\n");
  write_clicks(dir, "eval.csv", "user,b,a,y\n5,20,10,1\n");
  ClickSetOptions set;
  set.ids = "user";
  const std::vector<DatasetEntry> entries = click_entries(set);
  DatasetOptions o{.name = "csv", .dir = dir.path()};
  o.fields.files = "train.csv";
  o.fields.eval_files = "eval.csv";
  o.fields.inputs = "*";
  o.fields.label = "y";
  const RunData data = open_data(entries, o);
  EXPECT_EQ(values_in<float>(*data.train, 0, "dense"), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_in<float>(*data.eval, 0, "dense"), (std::vector<float>{10, 20}));
  const std::string& record = data.prediction.record;
  EXPECT_EQ(ClickRecord::parse(record).dense, (std::vector<std::string>{"a", "b"}));

  DatasetOptions predict = o;
  predict.purpose = Purpose::Predict;
  predict.record = &record;
  predict.fields.files = "eval.csv";
  predict.fields.eval_files = "";
  EXPECT_EQ(values_in<float>(*open_data(entries, predict).train, 0, "dense"), (std::vector<float>{10, 20}));
}

// Applies the transform to one sample of ids.
std::vector<std::int32_t> mapped(const IdRows& rows, const std::vector<std::int64_t>& ids) {
  const MapIds map(rows);
  const std::vector<Field> in{{"ids", Shape{std::ssize(ids)}, DType::I64}};
  std::vector<std::int32_t> out(ids.size());
  std::vector<std::int64_t> raw(ids.size());
  const std::byte* from[] = {reinterpret_cast<const std::byte*>(ids.data())};
  std::byte* to[] = {reinterpret_cast<std::byte*>(out.data()), reinterpret_cast<std::byte*>(raw.data())};
  const std::size_t fields = map.fields(in).size();
  map.apply({.index = 12}, in, from, std::span(to).first(fields));
  if (fields > 1) {
    EXPECT_EQ(raw, ids);
  }
  return out;
}

TEST(IdRows, HaveRangesOfOneTable) {
  const IdRows direct{.names = {"user", "item"}, .sizes = {3, 5}};
  EXPECT_EQ(mapped(direct, {2, 4}), (std::vector<std::int32_t>{2, 7}));
  expect_error([&] { mapped(direct, {1, 5}); }, {"field 'item' of sample 12: the id is 5, expected 0 to 4"});
  expect_error([&] { mapped(direct, {-1, 0}); }, {"field 'user' of sample 12: the id is missing"});
  expect_error([&] { MapIds(IdRows{.names = {"a", "b"}, .sizes = {2147483647, 1}}); }, {"2147483648 rows together"});
  EXPECT_EQ(mapped({.mapping = IdMapping::Vocabulary, .names = {"a", "b"}, .sizes = {4, 4}}, {9, -1}),
            (std::vector<std::int32_t>{0, 4}));
}

// Weights that were trained with a hash need the same one in any later version.
TEST(IdRows, TheHashStaysAsItIs) {
  EXPECT_EQ(hashed_row(kMissingId, 0, 1000), 0);
  std::map<std::int64_t, int> counts;
  for (std::int64_t id = 0; id < 9990; ++id) {
    const std::int64_t row = hashed_row(id * 7919, 3, 1000);
    ASSERT_TRUE(row >= 1 && row < 1000);
    ++counts[row];
  }
  for (const auto& [row, count] : counts) EXPECT_LT(count, 40) << row;  // 10 in the mean
  EXPECT_GT(std::ssize(counts), 990);
  const std::uint64_t h = mix(12345, 1);
  EXPECT_EQ(hashed_row(12345, 1, 1000), 1 + static_cast<std::int64_t>((h >> 32) * 999 >> 32));
  EXPECT_NE(hashed_row(12345, 0, 1 << 30), hashed_row(12345, 1, 1 << 30));
}

TEST(ClickColumns, JoinArraysOfAnySet) {
  const std::vector<double> a{1, 2, 3};
  const std::vector<std::int32_t> b{4, 5, 6, 7, 8, 9};
  const std::vector<std::uint8_t> y{1, 0, 2};
  std::vector<NamedTensor> tensors;
  tensors.push_back({"a", Tensor::from<double>({3}, a)});
  tensors.push_back({"b", Tensor::from<std::int32_t>({3, 2}, b)});
  tensors.push_back({"y", Tensor::from<std::uint8_t>({3}, y)});
  const ClickColumns set(std::make_shared<TensorDataset>(std::move(tensors)), {.dense = 1, .ids = 1});
  EXPECT_EQ(set.id_names(), (std::vector<std::string>{"b[0]", "b[1]"}));
  EXPECT_EQ(values_in<float>(set, 1, "dense"), (std::vector<float>{2}));
  EXPECT_EQ(values_in<std::int64_t>(set, 1, "ids"), (std::vector<std::int64_t>{6, 7}));
  EXPECT_EQ(values_in<float>(set, 0, "label")[0], 1.0F);
  expect_error([&] { values_in<float>(set, 2, "label"); }, {"sample 2: the label 'y' is 2"});
}

TEST(ClickBags, AreReadFromOptions) {
  const std::vector<ClickBag> bags = parse_bags("a,b:sum,c:max:50,d:counts=n");
  ASSERT_EQ(bags.size(), 4U);
  EXPECT_EQ(bags[0].join, BagJoin::Mean);
  EXPECT_EQ(bags[1].join, BagJoin::Sum);
  EXPECT_EQ(bags[2].places, 50);
  EXPECT_EQ(bags[3].counts, "n");
  EXPECT_EQ(columns_of(places_of(bags, {"x", "c", "a"})), 1 + 50 + 16);
  const auto expect_refused = [](const std::string& text, const std::string& message) {
    expect_error([&] { parse_bags(text); }, {message});
  };
  expect_refused("a:median", "'median' behind the field 'a'");
  expect_refused("a:0", "'0' behind the field");
  expect_refused("a,a", "the field 'a' twice");
  expect_refused(":sum", "without a field");
  expect_error([&] { check_bags(bags, {"a", "x"}); }, {"the field 'b', expected one of the fields of ids: a, x"});
}

TEST(ClickBags, OfTextFilesHaveAnyNumberOfIds) {
  const TempDir dir;
  ClickTableOptions options{.files = {write_clicks(dir, "t.csv", "u,g,y\n1,5|6|7,1\n2,,0\n3,NA|9,1\n")},
                            .ids = {"u", "g"},
                            .label = "y",
                            .bags = parse_bags("g:3")};
  const ClickTable set(options);
  EXPECT_EQ(values_in<std::int64_t>(set, 0, "ids"), (std::vector<std::int64_t>{1, 5, 6, 7}));
  EXPECT_EQ(values_in<std::int64_t>(set, 1, "ids"), (std::vector<std::int64_t>{2, -1, -1, -1}));
  EXPECT_EQ(values_in<std::int64_t>(set, 2, "ids"), (std::vector<std::int64_t>{3, 9, -1, -1}));
  options.bags = parse_bags("g:2");
  expect_error([&] { ClickTable{options}; }, {"line 2, column 1 ('g'): a bag of more than 2 ids"});
  const IdRows rows{.names = {"u", "g"}, .sizes = {4, 10}, .places = {0, 3}};
  EXPECT_EQ(mapped(rows, {3, 9, -1, -1}), (std::vector<std::int32_t>{3, 13, 14, 14}));
  expect_error([&] { mapped(rows, {3, 10, -1, -1}); }, {"field 'g' of sample 12: the id is 10, expected 0 to 9"});
  IdRows hashed = rows;
  hashed.mapping = IdMapping::Hash;
  EXPECT_EQ(mapped(hashed, {-1, -1, -1, -1}), (std::vector<std::int32_t>{0, 14, 14, 14}));
}

TEST(ClickBags, OfArraysHaveCounts) {
  const auto arrays = [](std::vector<std::int32_t> counts, std::vector<std::int64_t> ids, double x = 1) {
    std::vector<NamedTensor> tensors;
    tensors.push_back({"x", Tensor::from<double>({2}, std::vector<double>{x, 2})});
    tensors.push_back({"u", Tensor::from<std::int64_t>({2}, std::vector<std::int64_t>{7, 8})});
    tensors.push_back({"g", Tensor::from<std::int64_t>({2, 3}, ids)});
    tensors.push_back({"n", Tensor::from<std::int32_t>({2}, counts)});
    return ClickColumns(std::make_shared<TensorDataset>(std::move(tensors)),
                        {.dense = 1, .ids = 2, .bags = parse_bags("g:counts=n"), .label = false});
  };
  const ClickColumns set = arrays({2, 0}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(set.id_names(), (std::vector<std::string>{"u", "g"}));
  EXPECT_EQ(set.id_places(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(values_in<std::int64_t>(set, 0, "ids"), (std::vector<std::int64_t>{7, 1, 2, -1}));
  EXPECT_EQ(values_in<std::int64_t>(set, 1, "ids"), (std::vector<std::int64_t>{8, -1, -1, -1}));
  expect_error(
      [&] {
        values_in<std::int64_t>(arrays({4, 0}, {1, 2, 3, 4, 5, 6}), 0, "ids");
      },
      {"sample 0: the count 'n' is 4, expected 0 to 3"});
  expect_error(
      [&] {
        values_in<std::int64_t>(arrays({3, 0}, {1, -2, 3, 4, 5, 6}), 0, "ids");
      },
      {"sample 0: the id in column 2 is -2"});
  expect_error(
      [&] {
        values_in<std::int64_t>(arrays({3, 0}, {1, 2, 3, 4, 5, 6}, NAN), 0, "ids");
      },
      {"sample 0: 'x' is nan, expected a finite number"});
}

TEST(ClickNegatives, FollowTheSharesOfItems) {
  constexpr std::int64_t kDrawn = 4000;
  std::vector<NamedTensor> tensors;  // users 0 to 4, items 1 (three times), 3 and 4, each with one more id
  tensors.push_back({"ids", Tensor::from<std::int64_t>(
                                {5, 3}, std::vector<std::int64_t>{0, 1, 5, 1, 3, 6, 2, 1, 5, 3, 4, 7, 4, 1, 5})});
  RunData data{.train = std::make_unique<TensorDataset>(std::move(tensors))};
  const IdRows ids{.names = {"user", "item", "kind"}, .sizes = {5, 5, 9}};
  const auto list = std::make_shared<ItemList>(list_items(data, ids, 1, 0.5, nullptr));
  EXPECT_EQ(list->columns, 2);
  EXPECT_EQ(list->rows, (std::vector<std::int32_t>{6, 15, 8, 16, 9, 17}));
  const std::vector<double> shares = item_shares(std::vector<std::int64_t>{0, 3, 0, 1, 1}, 0.5);
  EXPECT_NEAR(shares[1], std::sqrt(3.0) / (std::sqrt(3.0) + 2), 1e-15);
  EXPECT_EQ(shares[2], 0);
  const DrawNegatives draw(kDrawn, 2, list);
  const std::vector<Field> in{{"ids", {3}, DType::I32}};
  const auto drawn = [&](const SampleKey& key) {
    std::vector<std::int32_t> from(3), ids_out(3), out(2 * kDrawn);
    const std::byte* read[] = {reinterpret_cast<const std::byte*>(from.data())};
    std::byte* write[] = {reinterpret_cast<std::byte*>(ids_out.data()), reinterpret_cast<std::byte*>(out.data())};
    draw.apply(key, in, read, write);
    return out;
  };
  const std::vector<std::int32_t> items = drawn({.seed = 1, .epoch = 2, .index = 3});
  EXPECT_EQ(items, drawn({.seed = 1, .epoch = 2, .index = 3}));
  EXPECT_NE(items, drawn({.seed = 1, .epoch = 3, .index = 3}));
  double often = 0;
  for (std::size_t i = 0; i < items.size(); i += 2) {
    EXPECT_EQ(items[i + 1], items[i] == 6 ? 15 : items[i] == 8 ? 16 : 17);
    often += items[i] == 6 ? 1 : 0;
  }
  EXPECT_LT(std::abs(often - kDrawn * shares[1]), 4 * std::sqrt(kDrawn * shares[1] * (1 - shares[1])));
}

TEST(ClickRecords, ComeBackAsTheyWere) {
  const ClickRecord record{
      .ids = {.mapping = IdMapping::Hash, .names = {"a", "b"}, .sizes = {5, 6}, .places = {0, 4}},
      .dense = {"x"},
      .normalisation = Normalisation({{.field = "dense", .channel_axis = 0, .shift = {1}, .scale = {2}}}),
      .options = R"({"click-seed":3})"};
  const ClickRecord back = ClickRecord::parse(record.text());
  EXPECT_EQ(back.text(), record.text());
  EXPECT_EQ(back.ids.rows(), 11);
  EXPECT_EQ(back.options, record.options);
  expect_error([] { ClickRecord::parse("{}"); }, {"the checkpoint's record of its data cannot be used"});
}

}  // namespace
}  // namespace lockstep::datasets
