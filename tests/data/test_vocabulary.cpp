// Vocabularies against a plain one, with sightings of several ranks, and over a state that was saved.
#include "lockstep/data/vocabulary.h"

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/core/random.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

// The sightings of a step, in order: a field has many ids at first and drifts on.
std::vector<Sighting> draw_step(std::int64_t step, std::int64_t fields) {
  RandomStream random(11, static_cast<std::uint64_t>(step));
  std::vector<Sighting> list;
  for (std::int64_t position = 0; position < 40; ++position) {
    const auto id = static_cast<std::int64_t>(random.below(12)) + step / 3;
    list.push_back({.field = position % fields, .id = id == 5 ? -1 : id, .times = 1, .position = position});
  }
  return list;
}

// The definition, step by step, for one field: everything is looked for in lists.
struct Plain {
  VocabularyOptions options;
  std::map<std::int64_t, std::int64_t> row_of{}, last{};
  std::vector<std::pair<std::int64_t, std::int64_t>> waiting{};  // id, sightings
  std::set<std::int64_t> had_ids{};
  std::int64_t steps = 0, changes = 0;

  void advance(const std::vector<Sighting>& list, std::int64_t field) {
    ++steps;
    std::vector<std::int64_t> order;
    std::map<std::int64_t, std::int64_t> times;
    for (const Sighting& s : list) {
      if (s.field != field || s.id < 0) continue;
      if (++times[s.id] == 1) order.push_back(s.id);
    }
    for (const std::int64_t id : order) {
      if (row_of.contains(id)) last[id] = steps;
    }
    std::erase_if(row_of, [&](const auto& one) {
      return options.evict_after > 0 && last[one.first] < steps - options.evict_after;
    });
    for (const std::int64_t id : order) {
      if (!row_of.contains(id)) see(id, times[id]);
    }
  }

  void see(std::int64_t id, std::int64_t times) {
    const auto found = std::ranges::find(waiting, id, &std::pair<std::int64_t, std::int64_t>::first);
    const std::int64_t all = times + (found != waiting.end() && times < options.admit_after ? found->second : 0);
    std::int64_t free = 1;
    const auto taken = [&](std::int64_t row) {
      return std::ranges::any_of(row_of, [&](const auto& one) { return one.second == row; });
    };
    while (free < options.rows && taken(free)) ++free;
    if (all >= options.admit_after && free < options.rows) {
      if (found != waiting.end()) waiting.erase(found);
      row_of[id] = free;
      last[id] = steps;
      changes += had_ids.insert(free).second ? 0 : 1;
    } else if (times < options.admit_after) {
      if (found != waiting.end())
        found->second += times;
      else
        waiting.emplace_back(id, times);
    }
  }
};

class Vocabularies : public testing::TestWithParam<VocabularyOptions> {};

TEST_P(Vocabularies, GiveTheRowsOfThePlainOneAtAnyNumberOfRanks) {
  const VocabularyOptions options = GetParam();
  std::vector<Plain> plain(static_cast<std::size_t>(options.fields), Plain{.options = options});
  Vocabulary one(options), three(options);
  std::int64_t changes = 0;
  for (std::int64_t step = 0; step < 60; ++step) {
    const std::vector<Sighting> list = draw_step(step, options.fields);
    for (std::int64_t f = 0; f < options.fields; ++f) plain[static_cast<std::size_t>(f)].advance(list, f);
    changes += std::ssize(one.advance(list));
    // Three ranks that join the sightings of an id, in another order.
    std::vector<Sighting> parts;
    for (std::size_t rank = 3; rank-- > 0;) {
      std::map<std::pair<std::int64_t, std::int64_t>, Sighting> mine;
      for (std::size_t i = rank * 40 / 3; i < (rank + 1) * 40 / 3; ++i) {
        const auto [entry, is_new] = mine.try_emplace({list[i].field, list[i].id}, list[i]);
        if (!is_new) ++entry->second.times;
      }
      for (const auto& [key, sighting] : mine) parts.push_back(sighting);
    }
    three.advance(parts);
    ASSERT_EQ(one.state(), three.state()) << step;
    if (step == 30) {  // a run that goes on from a checkpoint
      Vocabulary again(options);
      again.load(one.state());
      one = std::move(again);
    }
    for (std::int64_t f = 0; f < options.fields; ++f) {
      const Plain& expected = plain[static_cast<std::size_t>(f)];
      ASSERT_EQ(one.known(f), std::ssize(expected.row_of)) << step;
      for (std::int64_t id = 0; id < 40; ++id)
        ASSERT_EQ(one.row(f, id), expected.row_of.contains(id) ? expected.row_of.at(id) : 0) << step << " " << id;
    }
  }
  std::int64_t expected_changes = 0;
  for (const Plain& field : plain) expected_changes += field.changes;
  EXPECT_EQ(changes, expected_changes);
  EXPECT_EQ(std::ssize(one.state()), Vocabulary::state_size(options));
}

INSTANTIATE_TEST_SUITE_P(Options, Vocabularies,
                         testing::Values(VocabularyOptions{.rows = 64}, VocabularyOptions{.fields = 3, .rows = 6},
                                         VocabularyOptions{.fields = 2, .rows = 64, .admit_after = 4},
                                         VocabularyOptions{.rows = 40, .evict_after = 2},
                                         VocabularyOptions{
                                             .fields = 2, .rows = 40, .admit_after = 3, .evict_after = 3}));

TEST(Vocabulary, RefusesAStateThatIsNone) {
  const VocabularyOptions options{.rows = 8};
  Vocabulary vocabulary(options);
  vocabulary.advance({{.id = 3, .times = 1}});
  std::vector<std::int64_t> state = vocabulary.state();
  state.pop_back();
  expect_error([&] { vocabulary.load(state); }, {"the state has 30 numbers"});
  state = vocabulary.state();
  state[2] = 9;
  expect_error([&] { vocabulary.load(state); }, {"9 rows"});
  state = vocabulary.state();
  state[7] = 4;  // row 0 is no id's
  expect_error([&] { vocabulary.load(state); }, {"has id 4 in row 0"});
  EXPECT_EQ(vocabulary.row(0, 3), 1);
  expect_error([] { Vocabulary({.rows = 1}); }, {"fields of 1 rows"});
}

}  // namespace
}  // namespace lockstep::data
