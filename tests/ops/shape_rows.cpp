// Ops that move elements: slices, padding, joined and cut values, axes in another order, other shapes.
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

using Index = std::vector<std::int64_t>;

double at(const Array& x, const Index& index) {
  std::int64_t offset = 0;
  for (int d = 0; d < x.shape.rank(); ++d) offset = offset * x.shape[d] + index[static_cast<std::size_t>(d)];
  return x[offset];
}

// Each element of a value of this shape is value(its index).
Array made(Shape shape, const std::function<double(const Index&)>& value) {
  Array y(std::move(shape));
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    Index index(static_cast<std::size_t>(y.shape.rank()));
    std::int64_t rest = i;
    for (int d = y.shape.rank() - 1; d >= 0; --d) {
      index[static_cast<std::size_t>(d)] = rest % y.shape[d];
      rest /= y.shape[d];
    }
    y[i] = value(index);
  }
  return y;
}

Row row_of(std::string op, std::string config, Shape x, Value (*trace)(Value), Array (*reference)(const Array&)) {
  return {.op = std::move(op),
          .config = std::move(config),
          .operands = {{std::move(x)}},
          .trace = [=](auto v) { return trace(v[0]); },
          .reference = [=](auto in) { return reference(in[0]); }};
}

Array padded(const Array& x, Index before, Index after, std::int64_t (*from)(std::int64_t, std::int64_t)) {
  Shape shape = x.shape;
  for (int d = 0; d < shape.rank(); ++d)
    shape[d] += before[static_cast<std::size_t>(d)] + after[static_cast<std::size_t>(d)];
  return made(shape, [&](const Index& i) {
    Index source;
    for (std::size_t d = 0; d < i.size(); ++d) {
      source.push_back(from(i[d] - before[d], x.shape[static_cast<int>(d)]));
      if (source[d] < 0) return 0.5;
    }
    return at(x, source);
  });
}

std::int64_t inside(std::int64_t i, std::int64_t n) { return i < n ? i : -1; }
std::int64_t reflected(std::int64_t i, std::int64_t n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; }
std::int64_t nearest(std::int64_t i, std::int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
std::int64_t around(std::int64_t i, std::int64_t n) { return (i + n) % n; }

std::vector<Row> slice_rows() {
  return {
      row_of(
          "slice", "with_steps", Shape{4, 5, 6},
          [](Value x) {
            return slice(x, {{.start = 1, .length = 2}, {.start = 0, .length = 3, .step = 2}, {5, 4, -1}});
          },
          [](const Array& x) {
            return made(Shape{2, 3, 4}, [&](const Index& i) { return at(x, {i[0] + 1, 2 * i[1], 5 - i[2]}); });
          }),
      row_of(
          "slice", "of_one_axis", Shape{3, 7}, [](Value x) { return slice(x, -1, 2, 3, 2); },
          [](const Array& x) {
            return made(Shape{3, 3}, [&](const Index& i) { return at(x, {i[0], 2 + 2 * i[1]}); });
          }),
      row_of(
          "slice", "select", Shape{2, 3, 4}, [](Value x) { return select(x, 1, -1); },
          [](const Array& x) {
            return made(Shape{2, 4}, [&](const Index& i) { return at(x, {i[0], 2, i[1]}); });
          }),
      row_of(
          "slice", "flip", Shape{2, 3, 4},
          [](Value x) {
            return flip(x, {0, -1});
          },
          [](const Array& x) {
            return made(Shape{2, 3, 4}, [&](const Index& i) { return at(x, {1 - i[0], i[1], 3 - i[2]}); });
          }),
      row_of(
          "place", "with_steps", Shape{2, 3},
          [](Value x) {
            return place(x, Shape{5, 4}, {{.start = 1, .length = 2, .step = 3}, {2, 3, -1}}, 0.5);
          },
          [](const Array& x) {
            return made(Shape{5, 4}, [&](const Index& i) {
              return i[0] % 3 == 1 && i[1] < 3 ? at(x, {i[0] / 3, 2 - i[1]}) : 0.5;
            });
          }),
      row_of(
          "roll", "two_axes", Shape{3, 2, 5},
          [](Value x) {
            return roll(x, {1, -12}, {0, 2});
          },
          [](const Array& x) {
            return made(Shape{3, 2, 5}, [&](const Index& i) { return at(x, {(i[0] + 2) % 3, i[1], (i[2] + 12) % 5}); });
          }),
  };
}

std::vector<Row> pad_rows() {
  return {
      row_of(
          "place", "padding_with_a_constant", Shape{2, 3, 4},
          [](Value x) {
            return pad(x, {1, 2, 0, 1}, PadMode::Constant, 0.5);
          },
          [](const Array& x) {
            return padded(x, {0, 0, 1}, {0, 1, 2}, inside);
          }),
      row_of(
          "place", "padding_and_cutting", Shape{3, 4},
          [](Value x) {
            return pad(x, {-1, 2, 1, -2}, PadMode::Constant, 0.5);
          },
          [](const Array& x) {
            return padded(x, {1, -1}, {-2, 2}, inside);
          }),
      row_of(
          "slice", "negative_padding", Shape{3, 4},
          [](Value x) {
            return pad(x, {-1, -2});
          },
          [](const Array& x) {
            return padded(x, {0, -1}, {0, -2}, inside);
          }),
      row_of(
          "pad", "reflect", Shape{2, 3, 4},
          [](Value x) {
            return pad(x, {2, 3, 2, 1}, PadMode::Reflect);
          },
          [](const Array& x) {
            return padded(x, {0, 2, 2}, {0, 1, 3}, reflected);
          }),
      row_of(
          "pad", "replicate", Shape{2, 3, 4},
          [](Value x) {
            return pad(x, {3, 1, 0, 5}, PadMode::Replicate);
          },
          [](const Array& x) {
            return padded(x, {0, 0, 3}, {0, 5, 1}, nearest);
          }),
      row_of(
          "pad", "circular", Shape{2, 2, 3, 4},
          [](Value x) {
            return pad(x, {1, 4, 3, 0, 1, 1}, PadMode::Circular);
          },
          [](const Array& x) {
            return padded(x, {0, 1, 3, 1}, {0, 1, 0, 4}, around);
          }),
      row_of(
          "pad", "circular_and_cutting", Shape{5, 4},
          [](Value x) {
            return pad(x, {0, 0, 3, -1}, PadMode::Circular);
          },
          [](const Array& x) {
            return padded(x, {3, 0}, {-1, 0}, around);
          }),
  };
}

std::vector<Row> concat_rows() {
  return {
      {.op = "concat",
       .config = "three_values",
       .operands = {{Shape{2, 3, 2}}, {Shape{2, 1, 2}}, {Shape{2, 4, 2}}},
       .trace =
           [](auto v) {
             return concat({v[0], v[1], v[2]}, 1);
           },
       .reference =
           [](auto in) {
             return made(Shape{2, 8, 2}, [&](const Index& i) {
               if (i[1] < 3) return at(in[0], i);
               return i[1] < 4 ? at(in[1], {i[0], 0, i[2]}) : at(in[2], {i[0], i[1] - 4, i[2]});
             });
           }},
      row_of(
          "concat", "one_value_twice", Shape{3, 2},
          [](Value x) {
            return concat({x, square(x)}, -1);
          },
          [](const Array& x) {
            return made(Shape{3, 4}, [&](const Index& i) {
              return i[1] < 2 ? at(x, i) : at(x, {i[0], i[1] - 2}) * at(x, {i[0], i[1] - 2});
            });
          }),
      {.op = "concat",
       .config = "with_a_constant",
       .operands = {{Shape{2, 2}}, {Shape{1, 2}}},
       .trace =
           [](auto v) {
             return concat({v[0], v[1]}, 0);
           },
       .reference =
           [](auto in) {
             return made(Shape{3, 2}, [&](const Index& i) { return i[0] < 2 ? at(in[0], i) : at(in[1], {0, i[1]}); });
           },
       .constant = {true, false}},
      {.op = "concat",
       .config = "stack",
       .operands = {{Shape{2, 3}}, {Shape{2, 3}}},
       .trace =
           [](auto v) {
             return stack({v[0], v[1]}, -2);
           },
       .reference =
           [](auto in) {
             return made(Shape{2, 2, 3}, [&](const Index& i) { return at(i[1] == 0 ? in[0] : in[1], {i[0], i[2]}); });
           }},
      row_of(
          "split", "parts_of_which_one_is_not_used", Shape{2, 6},
          [](Value x) {
            const auto parts = split(x, std::vector<std::int64_t>{2, 1, 3}, 1);
            return concat({parts[2], square(parts[0])}, 1);
          },
          [](const Array& x) {
            return made(Shape{2, 5}, [&](const Index& i) {
              return i[1] < 3 ? at(x, {i[0], i[1] + 3}) : at(x, {i[0], i[1] - 3}) * at(x, {i[0], i[1] - 3});
            });
          }),
      row_of(
          "split", "one_part", Shape{4, 2}, [](Value x) { return split(x, 3, 0)[1]; },
          [](const Array& x) {
            return made(Shape{1, 2}, [&](const Index& i) { return at(x, {3, i[1]}); });
          }),
      row_of(
          "split", "chunks", Shape{7, 2},
          [](Value x) {
            const auto parts = chunk(x, 3);
            return concat({parts[2], parts[1], parts[0]}, 0);
          },
          [](const Array& x) {
            return made(Shape{7, 2}, [&](const Index& i) {
              const std::int64_t from = i[0] == 0 ? 6 : i[0] < 4 ? i[0] + 2 : i[0] - 4;
              return at(x, {from, i[1]});
            });
          }),
  };
}

std::vector<Row> permute_rows() {
  return {
      row_of(
          "permute", "four_axes", Shape{2, 3, 4, 5},
          [](Value x) {
            return permute(x, {3, 1, 0, -2});
          },
          [](const Array& x) {
            return made(Shape{5, 3, 2, 4}, [&](const Index& i) { return at(x, {i[2], i[1], i[3], i[0]}); });
          }),
      row_of(
          "permute", "runs_stay_whole", Shape{2, 3, 4}, [](Value x) { return transpose(x, 0, 1); },
          [](const Array& x) {
            return made(Shape{3, 2, 4}, [&](const Index& i) { return at(x, {i[1], i[0], i[2]}); });
          }),
      row_of(
          "permute", "matrix", Shape{9, 11}, [](Value x) { return transpose(x, -1, -2); },
          [](const Array& x) {
            return made(Shape{11, 9}, [&](const Index& i) { return at(x, {i[1], i[0]}); });
          }),
      row_of(
          "permute", "pixel_shuffle", Shape{2, 12, 3, 2}, [](Value x) { return pixel_shuffle(x, 2); },
          [](const Array& x) {
            return made(Shape{2, 3, 6, 4}, [&](const Index& i) {
              return at(x, {i[0], i[1] * 4 + i[2] % 2 * 2 + i[3] % 2, i[2] / 2, i[3] / 2});
            });
          }),
      row_of(
          "permute", "pixel_unshuffle", Shape{2, 4, 9},
          [](Value x) {
            return pixel_unshuffle(reshape(x, {2, 1, 6, 6}), 3);
          },
          [](const Array& x) {
            return made(Shape{2, 9, 2, 2},
                        [&](const Index& i) { return x[i[0] * 36 + (i[2] * 3 + i[1] / 3) * 6 + i[3] * 3 + i[1] % 3]; });
          }),
      row_of(
          "reshape", "permute_of_ones", Shape{2, 1, 3},
          [](Value x) {
            return square(permute(x, {1, 0, 2}));
          },
          [](const Array& x) {
            return made(Shape{1, 2, 3}, [&](const Index& i) {
              return at(x, {i[1], 0, i[2]}) * at(x, {i[1], 0, i[2]});
            });
          }),
      row_of(
          "reshape", "flatten_axes", Shape{2, 3, 2, 2}, [](Value x) { return square(flatten(x, 1, -2)); },
          [](const Array& x) {
            return made(Shape{2, 6, 2}, [&](const Index& i) {
              const double v = x[(i[0] * 6 + i[1]) * 2 + i[2]];
              return v * v;
            });
          }),
      row_of(
          "reshape", "squeeze_and_unsqueeze", Shape{1, 3, 1},
          [](Value x) { return unsqueeze(unsqueeze(squeeze(squeeze(x, 0)), 0), -1); },
          [](const Array& x) { return x; }),
  };
}

}  // namespace

std::vector<Row> shape_rows() {
  std::vector<Row> rows;
  for (const auto part : {slice_rows, pad_rows, concat_rows, permute_rows}) {
    for (Row& row : part()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lockstep::optest
