// A graph whose ops are traced inside the module layer1.0.conv1, for tests of the errors that ops throw.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"

namespace lockstep {

class ShapeErrors : public ::testing::Test {
 protected:
  Value value(Shape shape, DType dtype = DType::F32) {
    return graph_.input(formatted("input{}", count_++), {std::move(shape), dtype});
  }
  // Calls `trace` and expects an Error with this text.
  template <class F>
  void expect(const std::string& text, const F& trace) {
    const Graph::Scope scope(graph_, "layer1.0.conv1");
    try {
      trace();
      ADD_FAILURE() << "no error; expected '" << text << "'";
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), text);
    }
  }

  Graph graph_{Mode::Train, DType::F32};
  int count_ = 0;
};

}  // namespace lockstep
