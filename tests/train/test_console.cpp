// The screen of a terminal after lines, bars and changes of its width, by a small terminal in memory.
#include "lockstep/train/report/console.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

// Of unlimited height. A row that was wrapped goes on in the next one; when the width changes, terminals of one kind
// wrap such rows anew, with the cursor where it was in the text, and those of the other kind cut all rows off.
class Screen {
 public:
  enum class Kind { WrapsAnew, CutsOff };
  Screen(Kind kind, std::size_t columns) : kind_(kind), columns_(columns) {}

  void take(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i).starts_with("\x1b[J")) {
        rows_.resize(row_ + 1);
        rows_[row_].text.resize(std::min(rows_[row_].text.size(), column_));
        rows_[row_].goes_on = false;
        i += 2;
      } else if (text[i] == '\r') {
        column_ = 0;
      } else if (text[i] == '\n') {
        next_row(false);
        column_ = 0;
      } else {
        put(text[i]);
      }
    }
  }

  void resize(std::size_t columns) {
    columns_ = columns;
    if (kind_ == Kind::CutsOff) {
      for (Row& row : rows_) row.text.resize(std::min(row.text.size(), columns));
      column_ = std::min(column_, columns - 1);
      return;
    }
    std::vector<Row> wrapped;
    std::size_t cursor_row = 0, cursor_column = 0;
    for (std::size_t r = 0; r < rows_.size();) {
      std::string line;
      std::size_t cursor = std::string::npos;
      bool more = true;
      for (; more && r < rows_.size(); ++r) {
        if (r == row_) cursor = line.size() + column_;
        line += rows_[r].text;
        more = rows_[r].goes_on;
      }
      if (cursor != std::string::npos) {
        cursor_row = wrapped.size() + cursor / columns;
        cursor_column = cursor % columns;
      }
      for (std::size_t at = 0; at == 0 || at < line.size(); at += columns)
        wrapped.push_back({line.substr(at, columns), at + columns < line.size()});
    }
    rows_ = std::move(wrapped);
    row_ = cursor_row;
    column_ = cursor_column;
  }

  // Without blanks at the ends of rows and rows that are empty.
  std::string str() const {
    std::string all;
    for (const Row& row : rows_) {
      const std::size_t end = row.text.find_last_not_of(' ');
      if (end != std::string::npos) all += row.text.substr(0, end + 1) + "|";
    }
    return all;
  }

 private:
  struct Row {
    std::string text;
    bool goes_on = false;
  };
  void put(char c) {
    if (column_ == columns_) {
      next_row(true);
      column_ = 0;
    }
    std::string& text = rows_[row_].text;
    if (text.size() <= column_) text.resize(column_ + 1, ' ');
    text[column_++] = c;
  }
  void next_row(bool goes_on) {
    rows_[row_].goes_on = goes_on;
    if (++row_ == rows_.size()) rows_.emplace_back();
  }

  Kind kind_;
  std::size_t columns_, row_ = 0, column_ = 0;
  std::vector<Row> rows_{Row{}};
};

class ConsoleOnScreen : public testing::TestWithParam<Screen::Kind> {
 protected:
  // The text that was written since the last call goes to the screen.
  void flush() {
    const std::string all = out_.text();
    screen_.take(std::string_view(all).substr(taken_));
    taken_ = all.size();
  }
  void resize(int columns) {
    flush();
    columns_ = columns;
    screen_.resize(static_cast<std::size_t>(columns));
  }
  std::string shown() {
    flush();
    return screen_.str();
  }
  int columns_ = 60;
  Screen screen_{GetParam(), 60};
  TextStream out_;
  std::size_t taken_ = 0;
  std::optional<Console> console_{std::in_place,
                                  ConsoleOptions{.out = out_.file(), .columns = [this] { return columns_; }}};
};

std::string bar(char c) { return std::string(200, c); }

TEST_P(ConsoleOnScreen, ANarrowedTerminalKeepsNoOldBar) {
  console_->line("a line");
  console_->status(bar('='));
  EXPECT_EQ(shown(), "a line|" + std::string(59, '=') + "|");
  for (const int columns : {30, 29, 11, 40, 7, 60, 59, 20}) {
    resize(columns);
    console_->status(bar('+'));
    EXPECT_EQ(shown().find('='), std::string::npos) << columns << ": " << shown();
    console_->status(bar('='));
    EXPECT_EQ(shown().find('+'), std::string::npos) << columns << ": " << shown();
    const std::string all = shown();
    EXPECT_EQ(all.substr(all.size() - static_cast<std::size_t>(columns)),
              std::string(static_cast<std::size_t>(columns) - 1, '=') + "|")
        << columns;
    EXPECT_EQ(std::ranges::count(all, '='), columns - 1) << columns << ": " << all;
  }
}

TEST_P(ConsoleOnScreen, LinesAfterANarrowingStandAlone) {
  console_->status(bar('='));
  resize(30);
  console_->line("first");
  console_->line("second");
  EXPECT_EQ(shown(), "first|second|" + std::string(29, '=') + "|");
  resize(10);
  console_->status("");
  console_->line("third");
  EXPECT_EQ(shown(), "first|second|third|");
}

TEST_P(ConsoleOnScreen, NothingIsLeftAtTheEnd) {
  console_->line("a line");
  console_->status(bar('='));
  resize(8);
  console_.reset();
  EXPECT_EQ(shown(), "a line|");
}

TEST_P(ConsoleOnScreen, AShorterStatusReplacesALongerOne) {
  console_->status("a long status");
  console_->status("short");
  EXPECT_EQ(shown(), "short|");
  resize(100);
  console_->status(bar('='));
  EXPECT_EQ(shown(), fmt::format("{:=<99}|", ""));
}

INSTANTIATE_TEST_SUITE_P(Terminals, ConsoleOnScreen, testing::Values(Screen::Kind::WrapsAnew, Screen::Kind::CutsOff));

}  // namespace
}  // namespace lockstep::train
