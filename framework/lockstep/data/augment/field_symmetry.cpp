#include "lockstep/data/augment/field_symmetry.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kSymmetry = "field symmetry";

// Rotations only, reflections of single axes only, or both.
std::vector<GridSymmetry> symmetries(const FieldSymmetryOptions& options) {
  std::vector<GridSymmetry> all;
  std::array<int, 3> axis{0, 1, 2};
  do {
    for (int flips = 0; flips < 1 << options.dimensions; ++flips) {
      GridSymmetry symmetry{.axis = axis};
      for (int a = 0; a < options.dimensions; ++a) symmetry.flip[static_cast<std::size_t>(a)] = (flips >> a & 1) != 0;
      const bool exchanges = axis != std::array{0, 1, 2};
      if (!options.rotations && exchanges) continue;
      if (!options.flips && symmetry.determinant(options.dimensions) < 0) continue;
      if (!options.flips && !options.rotations && flips != 0) continue;
      all.push_back(symmetry);
    }
  } while (std::next_permutation(axis.begin(), axis.begin() + options.dimensions));
  return all;
}

template <class T>
void copy_channel(const T* in, T* out, const std::vector<std::int64_t>& grid, const GridSymmetry& symmetry,
                  bool negative) {
  // The grid as three axes, of which the first may have one point each.
  const std::size_t missing = 3 - grid.size();
  std::array<std::int64_t, 3> sides{1, 1, 1}, strides{0, 0, 0}, step{0, 0, 0};
  std::int64_t stride = 1, start = 0;
  for (std::size_t a = grid.size(); a > 0; --a) {
    sides[missing + a - 1] = grid[a - 1];
    strides[missing + a - 1] = stride;
    stride *= grid[a - 1];
  }
  for (std::size_t a = 0; a < grid.size(); ++a) {
    const std::int64_t along = strides[missing + static_cast<std::size_t>(symmetry.axis[a])];
    step[missing + a] = symmetry.flip[a] ? -along : along;
    if (symmetry.flip[a]) start += (sides[missing + a] - 1) * along;
  }
  for (std::int64_t i = 0; i < sides[0]; ++i) {
    for (std::int64_t j = 0; j < sides[1]; ++j) {
      const T* from = in + start + i * step[0] + j * step[1];
      for (std::int64_t k = 0; k < sides[2]; ++k, from += step[2]) *out++ = negative ? -*from : *from;
    }
  }
}

// Whether the symmetry leaves the grid's sides as they are.
bool keeps_sides(const GridSymmetry& symmetry, const std::vector<std::int64_t>& grid) {
  for (std::size_t a = 0; a < grid.size(); ++a) {
    if (grid[static_cast<std::size_t>(symmetry.axis[a])] != grid[a]) return false;
  }
  return true;
}

void check_channels(const SymmetricField& field, int dimensions) {
  std::vector<int> named = field.pseudoscalars;
  for (const auto* vectors : {&field.vectors, &field.pseudovectors}) {
    for (const std::vector<int>& vector : *vectors) {
      check(std::ssize(vector) == dimensions, kSymmetry,
            "a vector of '{}' has {} channels, expected {}, one for each axis of the grid", field.name, vector.size(),
            dimensions);
      named.insert(named.end(), vector.begin(), vector.end());
    }
  }
  std::ranges::sort(named);
  check(named.empty() || named.front() >= 0, kSymmetry, "'{}': channel {}, expected at least 0", field.name,
        named.empty() ? 0 : named.front());
  const auto twice = std::ranges::adjacent_find(named);
  check(twice == named.end(), kSymmetry, "'{}': channel {} is named twice", field.name,
        twice == named.end() ? 0 : *twice);
}

}  // namespace

int GridSymmetry::determinant(int dimensions) const {
  int sign = 1;
  for (int a = 0; a < dimensions; ++a) {
    if (flip[static_cast<std::size_t>(a)]) sign = -sign;
    for (int b = 0; b < a; ++b) {
      if (axis[static_cast<std::size_t>(b)] > axis[static_cast<std::size_t>(a)]) sign = -sign;
    }
  }
  return sign;
}

FieldSymmetry::FieldSymmetry(FieldSymmetryOptions options) : options_(std::move(options)) {
  check(options_.dimensions >= 1 && options_.dimensions <= 3, kSymmetry, "{} dimensions, expected 1 to 3",
        options_.dimensions);
  check(!options_.fields.empty(), kSymmetry, "there are no fields, expected at least one");
  for (const SymmetricField& field : options_.fields) check_channels(field, options_.dimensions);
  all_ = symmetries(options_);
}

const SymmetricField* FieldSymmetry::find(const std::string& name) const {
  const auto found = std::ranges::find(options_.fields, name, &SymmetricField::name);
  return found == options_.fields.end() ? nullptr : &*found;
}

std::vector<std::int64_t> FieldSymmetry::grid_of(const std::vector<Field>& fields) const {
  std::vector<std::int64_t> grid;
  for (const Field& field : fields) {
    if (field.shape.rank() < 2 || find(field.name) == nullptr) continue;
    const std::vector<std::int64_t> sides = field.shape.tail().dims();
    check(grid.empty() || grid == sides, kSymmetry, "'{}' is {}, but another field has the grid {}; expected one grid",
          field.name, field.shape.str(), Shape(grid).str());
    grid = sides;
  }
  return grid;
}

std::vector<Field> FieldSymmetry::fields(const std::vector<Field>& in) const {
  for (const SymmetricField& symmetric : options_.fields) {
    const Field& field = in[find_field(kSymmetry, in, symmetric.name)];
    check(field.dtype == DType::F32 || field.dtype == DType::F64, kSymmetry, "'{}' is {}, expected f32 or f64",
          field.name, name_of(field.dtype));
    const int rank = field.shape.rank();
    check(rank == 1 || rank == 1 + options_.dimensions, kSymmetry,
          "'{}' is {}, expected (channels) or (channels and {} axes)", field.name, field.shape.str(),
          options_.dimensions);
    sources(symmetric, field.shape[0], {});
  }
  grid_of(in);
  return in;
}

GridSymmetry FieldSymmetry::choose(const SampleKey& key, const std::vector<std::int64_t>& grid) const {
  std::vector<const GridSymmetry*> possible;
  for (const GridSymmetry& symmetry : all_) {
    if (keeps_sides(symmetry, grid)) possible.push_back(&symmetry);
  }
  RandomStream random = key.random("field symmetry");
  return *possible[static_cast<std::size_t>(random.below(possible.size()))];
}

std::vector<FieldSymmetry::Source> FieldSymmetry::sources(const SymmetricField& field, std::int64_t channels,
                                                          const GridSymmetry& symmetry) const {
  std::vector<Source> sources(static_cast<std::size_t>(channels));
  for (std::size_t c = 0; c < sources.size(); ++c) sources[c].channel = static_cast<std::int64_t>(c);
  const auto at = [&](int channel) -> Source& {
    check(channel < channels, kSymmetry, "'{}' has {} channels, channel {} is named", field.name, channels, channel);
    return sources[static_cast<std::size_t>(channel)];
  };
  const bool reflected = symmetry.determinant(options_.dimensions) < 0;
  const auto turn = [&](const std::vector<int>& vector, bool pseudo) {
    for (std::size_t a = 0; a < vector.size(); ++a) {
      at(vector[a]) = {.channel = vector[static_cast<std::size_t>(symmetry.axis[a])],
                       .negative = symmetry.flip[a] != (pseudo && reflected)};
    }
  };
  for (const std::vector<int>& vector : field.vectors) turn(vector, false);
  for (const std::vector<int>& vector : field.pseudovectors) turn(vector, true);
  for (const int channel : field.pseudoscalars) at(channel).negative = reflected;
  return sources;
}

void FieldSymmetry::apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                          std::span<std::byte* const> out) const {
  const GridSymmetry symmetry = choose(key, grid_of(shape));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Field& field = shape[i];
    const SymmetricField* const symmetric = find(field.name);
    if (field.bytes() == 0) continue;
    if (symmetric == nullptr) {
      std::memcpy(out[i], in[i], field.bytes());
      continue;
    }
    const std::vector<std::int64_t> grid = field.shape.tail().dims();
    const std::int64_t points = field.shape.tail().elements();
    const std::vector<Source> from = sources(*symmetric, field.shape[0], symmetry);
    for (std::int64_t c = 0; c < field.shape[0]; ++c) {
      const auto& [channel, negative] = from[static_cast<std::size_t>(c)];
      if (field.dtype == DType::F32) {
        copy_channel(reinterpret_cast<const float*>(in[i]) + channel * points,
                     reinterpret_cast<float*>(out[i]) + c * points, grid, symmetry, negative);
      } else {
        copy_channel(reinterpret_cast<const double*>(in[i]) + channel * points,
                     reinterpret_cast<double*>(out[i]) + c * points, grid, symmetry, negative);
      }
    }
  }
}

}  // namespace lockstep::data
