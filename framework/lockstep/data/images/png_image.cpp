#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/data/images/image_formats.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kPng = "png";
constexpr std::size_t kPngSignature = 8;

// libpng's state, its source, and its last message. It leaves a failed call by longjmp(), which must pass no object
// with a destructor: so each group of its calls is a function object that succeeds() runs.
struct PngState {
  PngState() = default;
  PngState(const PngState&) = delete;
  PngState& operator=(const PngState&) = delete;
  ~PngState() { png_destroy_read_struct(&png, &info, nullptr); }

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest{};
  std::jmp_buf leave{};
  std::array<char, 200> message{};
};

[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message.data(), message, state->message.size() - 1);
  std::longjmp(state->leave, 1);
}

void ignore_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void give_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->rest.size()) png_error(png, "the file ends within a chunk");
  std::memcpy(out, state->rest.data(), count);
  state->rest = state->rest.subspan(count);
}

// Runs `calls`; returns false if libpng left it, with state.message.
template <class Calls>
[[gnu::noinline]] bool succeeds(PngState& state, const Calls& calls) {
  if (setjmp(state.leave) != 0) return false;
  calls();
  return true;
}

// Throws Error unless the chunks follow each other up to the last one: a file that was cut is damaged for every region.
void check_chunks(std::span<const std::byte> bytes, const std::string& place) {
  for (std::size_t at = kPngSignature;;) {
    check(bytes.size() - at >= 12, kPng, "{}: truncated: offset {}: expected a chunk, the file has {} bytes left",
          place, at, bytes.size() - at);
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<std::size_t>(bytes[at + i]);
    check(bytes.size() - at - 12 >= length, kPng,
          "{}: truncated: offset {}: expected a chunk of {} bytes, the file has {} left", place, at, length + 12,
          bytes.size() - at);
    if (std::memcmp(bytes.data() + at + 4, "IEND", 4) == 0) return;
    at += length + 12;
  }
}

class PngImage : public EncodedImage {
 public:
  PngImage(std::span<const std::byte> bytes, std::string place, const ImageLimits& limits)
      : EncodedImage(std::move(place)), state_(std::make_unique<PngState>()) {
    check_chunks(bytes, place_);
    state_->rest = bytes;
    const bool read = succeeds(*state_, [state = state_.get()] {
      state->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, state, leave_png, ignore_warning);
      if (state->png == nullptr) return;
      state->info = png_create_info_struct(state->png);
      if (state->info == nullptr) return;
      png_set_read_fn(state->png, state, give_bytes);
      png_read_info(state->png, state->info);
    });
    check(read && state_->info != nullptr, kPng, "{}: {}", place_,
          read ? "libpng has no memory, or is of another version than its header" : state_->message.data());
    set_size(png_get_image_height(state_->png, state_->info), png_get_image_width(state_->png, state_->info), limits);
  }

  int reduction(double /*most*/) const override { return 1; }

  RgbPixels decode(const ImageRegion& region, int reduction) override {
    check(reduction == 1, kPng, "{}: reduction {}, expected 1", place_, reduction);
    check_region(region, reduction);
    const std::int64_t row_bytes = 3 * width();
    const int passes = convert_to_rgb(row_bytes);
    // Rows depend on those above. The passes of an interlaced image go through all rows.
    const Range rows = passes > 1 ? Range{0, height()} : region.rows;
    RgbPixels pixels{.region = {rows, {0, width()}}};
    pixels.values.resize(static_cast<std::size_t>(rows.size() * row_bytes));
    std::vector<std::uint8_t> unused(static_cast<std::size_t>(row_bytes));
    const bool read = succeeds(
        *state_, [png = state_->png, passes, rows, row_bytes, out = pixels.values.data(), skipped = unused.data()] {
          for (int pass = 0; pass < passes; ++pass) {
            for (std::int64_t y = 0; y < rows.end; ++y)
              png_read_row(png, y < rows.begin ? skipped : out + (y - rows.begin) * row_bytes, nullptr);
          }
        });
    check(read, kPng, "{}: {}", place_, state_->message.data());
    return pixels;
  }

 private:
  // Makes libpng convert rows to 8-bit RGB of `row_bytes` bytes; returns the number of passes over the image.
  int convert_to_rgb(std::int64_t row_bytes) {
    int passes = 0;
    std::size_t bytes = 0;
    const bool set = succeeds(*state_, [png = state_->png, info = state_->info, &passes, &bytes] {
      png_set_expand(png);  // palettes, and grey of less than 8 bits
      png_set_strip_16(png);
      png_set_strip_alpha(png);
      png_set_gray_to_rgb(png);
      passes = png_set_interlace_handling(png);
      png_read_update_info(png, info);
      bytes = png_get_rowbytes(png, info);
    });
    check(set, kPng, "{}: {}", place_, state_->message.data());
    check(bytes == static_cast<std::size_t>(row_bytes), kPng, "{}: rows of {} bytes after conversion, expected {}",
          place_, bytes, row_bytes);
    return passes;
  }

  std::unique_ptr<PngState> state_;
};

}  // namespace

std::unique_ptr<EncodedImage> open_png(std::span<const std::byte> bytes, std::string place, const ImageLimits& limits) {
  return std::make_unique<PngImage>(bytes, std::move(place), limits);
}

}  // namespace lockstep::data
