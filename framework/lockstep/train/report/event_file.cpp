#include "lockstep/train/report/event_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep::train {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = crc_table();

// A record's sums are rotated and shifted by a constant, so that the sum of data with sums in it is not special.
std::uint32_t masked_crc(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

ProtobufMessage event_at(double time, std::int64_t step) {
  ProtobufMessage message;
  message.add_double(1, time);              // Event.wall_time
  if (step != 0) message.add_int(2, step);  // Event.step
  return message;
}

// Statistics of a histogram's finite values.
struct Moments {
  double least = std::numeric_limits<double>::infinity(), most = -least, number = 0, sum = 0, squares = 0;
};

Moments moments_of(std::span<const double> values) {
  Moments m;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    m.least = std::min(m.least, value);
    m.most = std::max(m.most, value);
    m.number += 1;
    m.sum += value;
    m.squares += value * value;
  }
  return m;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string event_record(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  append_little_endian(record, static_cast<std::uint64_t>(data.size()));
  append_little_endian(record, masked_crc(crc32c(record)));
  record += data;
  append_little_endian(record, masked_crc(crc32c(data)));
  return record;
}

std::string version_event(double time) {
  ProtobufMessage message = event_at(time, 0);
  message.add_text(3, "brain.Event:2");  // Event.file_version
  return message.bytes();
}

std::string start_event(double time, std::int64_t step) {
  ProtobufMessage message = event_at(time, step), log;
  log.add_int(1, 1);            // SessionLog.status: START
  message.add_message(7, log);  // Event.session_log
  return message.bytes();
}

std::string summary_event(double time, std::int64_t step, const ProtobufMessage& summary) {
  ProtobufMessage message = event_at(time, step);
  message.add_message(5, summary);  // Event.summary
  return message.bytes();
}

void add_scalar(ProtobufMessage& summary, std::string_view tag, double value) {
  ProtobufMessage entry;
  entry.add_text(1, tag);                         // Summary.Value.tag
  entry.add_float(2, static_cast<float>(value));  // Summary.Value.simple_value
  summary.add_message(1, entry);                  // Summary.value
}

void add_text(ProtobufMessage& summary, std::string_view tag, std::string_view markdown) {
  ProtobufMessage entry, tensor, metadata, plugin, shape, dimension;
  dimension.add_int(1, 1);          // TensorShapeProto.Dim.size
  shape.add_message(2, dimension);  // TensorShapeProto.dim
  tensor.add_int(1, 7);             // TensorProto.dtype: DT_STRING
  tensor.add_message(2, shape);     // TensorProto.tensor_shape
  tensor.add_text(8, markdown);     // TensorProto.string_val
  plugin.add_text(1, "text");       // SummaryMetadata.PluginData.plugin_name
  metadata.add_message(1, plugin);  // SummaryMetadata.plugin_data
  metadata.add_int(4, 2);           // SummaryMetadata.data_class: DATA_CLASS_TENSOR
  entry.add_text(1, tag);           // Summary.Value.tag
  entry.add_message(8, tensor);     // Summary.Value.tensor
  entry.add_message(9, metadata);   // Summary.Value.metadata
  summary.add_message(1, entry);    // Summary.value
}

void add_histogram(ProtobufMessage& summary, std::string_view tag, std::span<const double> values) {
  constexpr std::size_t kParts = 30;
  const Moments m = moments_of(values);
  if (m.number == 0) return;
  const bool single = m.least == m.most;
  const double width = single ? 0 : (m.most / kParts - m.least / kParts);  // no overflow
  std::vector<double> limits, counts(single ? 1 : kParts, 0.0);
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) limits.push_back(m.least + width * static_cast<double>(i + 1));
  limits.push_back(m.most);
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double part = width > 0 ? (value / width - m.least / width) : 0;
    counts[std::min(counts.size() - 1, static_cast<std::size_t>(std::max(0.0, part)))] += 1;
  }
  ProtobufMessage histogram, entry;
  histogram.add_double(1, m.least);    // HistogramProto.min
  histogram.add_double(2, m.most);     // HistogramProto.max
  histogram.add_double(3, m.number);   // HistogramProto.num
  histogram.add_double(4, m.sum);      // HistogramProto.sum
  histogram.add_double(5, m.squares);  // HistogramProto.sum_squares
  histogram.add_doubles(6, limits);    // HistogramProto.bucket_limit
  histogram.add_doubles(7, counts);    // HistogramProto.bucket
  entry.add_text(1, tag);              // Summary.Value.tag
  entry.add_message(5, histogram);     // Summary.Value.histo
  summary.add_message(1, entry);       // Summary.value
}

}  // namespace lockstep::train
