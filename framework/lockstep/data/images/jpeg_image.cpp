#include <algorithm>
#include <array>
#include <csetjmp>

#include "lockstep/core/error.h"
#include "lockstep/data/images/image_formats.h"
#include "lockstep/data/images/libjpeg.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kJpeg = "jpeg";
// Columns that are decoded beside a region: the smooth enlargement of colours looks at its neighbours.
constexpr std::int64_t kColourMargin = 2;

// libjpeg's state, and its last message. It leaves a failed call by longjmp(), which must pass no object with a
// destructor: so each group of its calls is a function object that completes() runs.
struct JpegState {
  JpegState() = default;
  JpegState(const JpegState&) = delete;
  JpegState& operator=(const JpegState&) = delete;
  ~JpegState() { jpeg_destroy_decompress(&info); }

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf leave{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

[[noreturn]] void leave_jpeg(j_common_ptr info) {
  auto* state = static_cast<JpegState*>(info->client_data);
  info->err->format_message(info, state->message.data());
  std::longjmp(state->leave, 1);
}

// Warnings after which libjpeg invents pixels. Others, such as a few bytes too many before a marker, do not matter.
bool is_damage(int code) {
  constexpr std::array<int, 7> kDamage{JWRN_JPEG_EOF,         JWRN_HIT_MARKER,     JWRN_HUFF_BAD_CODE,
                                       JWRN_MUST_RESYNC,      JWRN_ARITH_BAD_CODE, JWRN_NOT_SEQUENTIAL,
                                       JWRN_BOGUS_PROGRESSION};
  return std::ranges::find(kDamage, code) != kDamage.end();
}

void take_message(j_common_ptr info, int level) {
  if (level < 0 && is_damage(info->err->msg_code)) leave_jpeg(info);
}

void print_nothing(j_common_ptr /*info*/) {}

// Runs `calls`; returns false if libjpeg left it, with state.message.
template <class Calls>
[[gnu::noinline]] bool completes(JpegState& state, const Calls& calls) {
  if (setjmp(state.leave) != 0) return false;
  calls();
  return true;
}

bool has_end_marker(std::span<const std::byte> bytes) {
  for (std::size_t i = bytes.size(); i >= 2; --i) {
    if (bytes[i - 1] == std::byte{0xD9} && bytes[i - 2] == std::byte{0xFF}) return true;
  }
  return false;
}

// CMYK as JPEG files hold it, 255 for no ink, to RGB.
void convert_cmyk(const std::uint8_t* from, std::uint8_t* to, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i, from += 4, to += 3) {
    const int black = from[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - from[c]) * black + 128;  // divided by 255 and rounded
      to[c] = static_cast<std::uint8_t>(std::max(0, black - (((product >> 8) + product) >> 8)));
    }
  }
}

class JpegImage : public EncodedImage {
 public:
  JpegImage(std::span<const std::byte> bytes, std::string place, const ImageLimits& limits)
      : EncodedImage(std::move(place)), state_(std::make_unique<JpegState>()) {
    check(has_end_marker(bytes), kJpeg, "{}: truncated: {} bytes without the end marker ff d9", place_, bytes.size());
    state_->info.err = jpeg_std_error(&state_->errors);
    state_->info.client_data = state_.get();
    state_->errors.error_exit = leave_jpeg;
    state_->errors.emit_message = take_message;
    state_->errors.output_message = print_nothing;
    const bool read = completes(*state_, [state = state_.get(), bytes] {
      jpeg_create_decompress(&state->info);
      jpeg_mem_src(&state->info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      jpeg_read_header(&state->info, TRUE);
    });
    check(read, kJpeg, "{}: {}", place_, state_->message.data());
    set_size(state_->info.image_height, state_->info.image_width, limits);
  }

  int reduction(double most) const override { return most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1; }

  RgbPixels decode(const ImageRegion& region, int reduction) override {
    check_region(region, reduction);
    const bool cmyk = state_->info.jpeg_color_space == JCS_CMYK || state_->info.jpeg_color_space == JCS_YCCK;
    const Range columns = start(region, reduction, cmyk);
    RgbPixels pixels{.region = {region.rows, columns}};
    const std::int64_t width = columns.size(), rows = region.rows.size();
    pixels.values.resize(static_cast<std::size_t>(rows * width * 3));
    std::vector<std::uint8_t> inks(cmyk ? static_cast<std::size_t>(width * 4) : 0);
    const bool read = completes(*state_, [state = state_.get(), out = pixels.values.data(), ink = inks.data(), rows,
                                          width, cmyk, skip = static_cast<JDIMENSION>(region.rows.begin)] {
      if (skip > 0) jpeg_skip_scanlines(&state->info, skip);
      for (std::int64_t y = 0; y < rows; ++y) {
        std::uint8_t* const row = out + y * width * 3;
        JSAMPROW to = cmyk ? ink : row;
        jpeg_read_scanlines(&state->info, &to, 1);  // the source has all bytes, so it reads a row
        if (cmyk) convert_cmyk(ink, row, width);
      }
      jpeg_abort_decompress(&state->info);
    });
    check(read, kJpeg, "{}: {}", place_, state_->message.data());
    return pixels;
  }

 private:
  // Starts decoding; returns the columns that rows will have.
  Range start(const ImageRegion& region, int reduction, bool cmyk) {
    jpeg_decompress_struct& info = state_->info;
    info.scale_num = 1;
    info.scale_denom = static_cast<unsigned>(reduction);
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;  // the same pixels on every processor
    info.do_fancy_upsampling = TRUE;
    const std::int64_t whole = (width() + reduction - 1) / reduction;
    JDIMENSION first = 0, count = static_cast<JDIMENSION>(whole);
    const std::int64_t begin = std::max<std::int64_t>(0, region.columns.begin - kColourMargin);
    const std::int64_t end = std::min(whole, region.columns.end + kColourMargin);
    // libjpeg moves the first column to the left, to a block's.
    const bool started = completes(*state_, [state = state_.get(), &first, &count, begin, end, whole] {
      jpeg_start_decompress(&state->info);
      if (begin == 0 && end == whole) return;
      first = static_cast<JDIMENSION>(begin);
      count = static_cast<JDIMENSION>(end - begin);
      jpeg_crop_scanline(&state->info, &first, &count);
    });
    check(started, kJpeg, "{}: {}", place_, state_->message.data());
    return {first, std::int64_t{first} + count};
  }

  std::unique_ptr<JpegState> state_;
};

}  // namespace

std::unique_ptr<EncodedImage> open_jpeg(std::span<const std::byte> bytes, std::string place,
                                        const ImageLimits& limits) {
  return std::make_unique<JpegImage>(bytes, std::move(place), limits);
}

}  // namespace lockstep::data
