// The form of TensorBoard's event files: records (TFRecord) of the message Event. A record is the length of its data (8
// bytes), a masked CRC-32C of these bytes, the data, and a masked CRC-32C of the data; numbers are little-endian.
// Sources: tensorflow/core/lib/io/record_writer.h for records, tensorboard/compat/proto/event.proto and summary.proto
// for messages. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/train/report/protobuf_message.h"

namespace lockstep::train {

std::uint32_t crc32c(std::string_view bytes);  // RFC 3720, appendix B.4
std::string event_record(std::string_view data);

// Each returns the data of one Event; `time` in seconds since 1970.
std::string version_event(double time);                   // the first of every file
std::string start_event(double time, std::int64_t step);  // readers drop what they have of `step` and later steps
std::string summary_event(double time, std::int64_t step, const ProtobufMessage& summary);

// Each adds a value to a Summary.
void add_scalar(ProtobufMessage& summary, std::string_view tag, double value);  // written as f32: the schema's type
void add_text(ProtobufMessage& summary, std::string_view tag, std::string_view markdown);
// Adds a histogram of 30 parts of equal width between the lowest and the highest value; values that are not finite are
// left out. Adds nothing if no value is finite.
void add_histogram(ProtobufMessage& summary, std::string_view tag, std::span<const double> values);

}  // namespace lockstep::train
