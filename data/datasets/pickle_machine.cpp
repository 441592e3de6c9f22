#include "data/datasets/pickle_machine.h"

#include <limits>
#include <optional>

namespace lockstep::datasets {
namespace {

constexpr std::size_t kMostDimensions = 32;  // NumPy's own limit
constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max();

// The text of a Python 2 string that Python 3 wrote: code points below 256 in UTF-8, as bytes.
std::optional<std::string> latin1(std::string_view utf8) {
  std::string bytes;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c < 0x80) {
      bytes += utf8[i];
    } else if ((c == 0xC2 || c == 0xC3) && i + 1 < utf8.size()) {
      const auto low = static_cast<unsigned char>(utf8[++i]);
      if ((low & 0xC0) != 0x80) return std::nullopt;
      bytes += static_cast<char>((c & 3) << 6 | (low & 0x3F));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace

std::size_t PickleMachine::run() {
  while (true) {
    opcode_at_ = at_;
    const std::uint8_t opcode = number<std::uint8_t>();
    if (opcode == '.') break;
    if (!constant(opcode) && !container(opcode) && !memory(opcode) && !object(opcode))
      wrong(formatted("opcode {:#04x}, expected those of a dict of numbers, texts and arrays", opcode));
  }
  if (at_ != bytes_.size()) wrong(formatted("the pickle ends here, but the file has {} bytes", bytes_.size()));
  const std::size_t result = pop();
  if (!stack_.empty()) wrong("the pickle ends with more than one value");
  return result;
}

bool PickleMachine::constant(std::uint8_t opcode) {
  const auto integer = [&](std::int64_t value) { push({.kind = Kind::Integer, .integer = value}); };
  const auto characters = [&](std::uint64_t count) { push({.kind = Kind::Text, .text = text(count)}); };
  switch (opcode) {
    case 0x80: {  // PROTO
      const int protocol = number<std::uint8_t>();
      if (protocol < 2 || protocol > 4) wrong(formatted("protocol {}, expected 2, 3 or 4", protocol));
      break;
    }
    case 0x95:
      take(8);
      break;  // FRAME
    case 'N':
      push({});
      break;  // NONE
    case 0x88:
      integer(1);
      break;  // NEWTRUE
    case 0x89:
      integer(0);
      break;  // NEWFALSE
    case 'K':
      integer(number<std::uint8_t>());
      break;  // BININT1
    case 'M':
      integer(number<std::uint16_t>());
      break;  // BININT2
    case 'J':
      integer(static_cast<std::int32_t>(number<std::uint32_t>()));
      break;  // BININT
    case 'U':
    case 'C':
    case 0x8C:
      characters(number<std::uint8_t>());
      break;  // SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE
    case 'T':
    case 'B':
    case 'X':
      characters(number<std::uint32_t>());
      break;  // BINSTRING, BINBYTES, BINUNICODE
    case 0x8D:
    case 0x8E:
      characters(number<std::uint64_t>());
      break;  // BINUNICODE8, BINBYTES8
    default:
      return false;
  }
  return true;
}

bool PickleMachine::container(std::uint8_t opcode) {
  const auto tuple = [&](std::vector<std::size_t> items) { push({.kind = Kind::Tuple, .items = std::move(items)}); };
  const auto append = [&](Kind kind, const std::vector<std::size_t>& items) {
    PickleValue& to = top(kind);
    if (kind == Kind::Dict && items.size() % 2 != 0) wrong("a key without a value");
    to.items.insert(to.items.end(), items.begin(), items.end());
  };
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      break;  // MARK
    case '}':
      push({.kind = Kind::Dict});
      break;  // EMPTY_DICT
    case ']':
      push({.kind = Kind::List});
      break;  // EMPTY_LIST
    case ')':
      push({.kind = Kind::Tuple});
      break;  // EMPTY_TUPLE
    case 't':
      tuple(pop_to_mark());
      break;  // TUPLE
    case 0x85:
    case 0x86:
    case 0x87:
      tuple(pop_items(opcode - 0x84U));
      break;  // TUPLE1, TUPLE2, TUPLE3
    case 'a':
      append(Kind::List, pop_items(1));
      break;  // APPEND
    case 'e':
      append(Kind::List, pop_to_mark());
      break;  // APPENDS
    case 's':
      append(Kind::Dict, pop_items(2));
      break;  // SETITEM
    case 'u':
      append(Kind::Dict, pop_to_mark());
      break;  // SETITEMS
    default:
      return false;
  }
  return true;
}

bool PickleMachine::memory(std::uint8_t opcode) {
  const auto put = [&](std::uint64_t key) {
    const std::size_t number = pop();
    stack_.push_back(number);
    memo_[key] = number;
  };
  const auto get = [&](std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) wrong(formatted("recalls value {}, which was not kept", key));
    stack_.push_back(found->second);
  };
  switch (opcode) {
    case 'q':
      put(number<std::uint8_t>());
      break;  // BINPUT
    case 'r':
      put(number<std::uint32_t>());
      break;  // LONG_BINPUT
    case 0x94:
      put(memo_.size());
      break;  // MEMOIZE
    case 'h':
      get(number<std::uint8_t>());
      break;  // BINGET
    case 'j':
      get(number<std::uint32_t>());
      break;  // LONG_BINGET
    default:
      return false;
  }
  return true;
}

bool PickleMachine::object(std::uint8_t opcode) {
  switch (opcode) {
    case 'c': {  // GLOBAL
      const std::string_view module = line(), name = line();
      push({.kind = Kind::Global, .text = keep(formatted("{} {}", module, name))});
      break;
    }
    case 0x93: {  // STACK_GLOBAL
      const std::vector<std::size_t> names = pop_items(2);
      for (const std::size_t n : names)
        if (values_[n].kind != Kind::Text) wrong("a name that is not a text");
      push({.kind = Kind::Global, .text = keep(formatted("{} {}", values_[names[0]].text, values_[names[1]].text))});
      break;
    }
    case 'R':
      call();
      break;  // REDUCE
    case 'b':
      build();
      break;  // BUILD
    default:
      return false;
  }
  return true;
}

void PickleMachine::call() {
  const PickleValue& arguments = top(Kind::Tuple);  // until something is pushed
  pop();
  const std::string_view function = top(Kind::Global).text;
  pop();
  if (function == "numpy.core.multiarray _reconstruct" || function == "numpy._core.multiarray _reconstruct") {
    if (item(arguments, 0, Kind::Global).text != "numpy ndarray") wrong("an object that is not a numpy.ndarray");
    push({.kind = Kind::Array, .integer = -1});  // filled by BUILD
  } else if (function == "numpy dtype") {
    push({.kind = Kind::Dtype, .text = item(arguments, 0, Kind::Text).text});
  } else if (function == "_codecs encode") {
    if (item(arguments, 1, Kind::Text).text != "latin1") wrong("a text in a code other than latin1");
    auto bytes = latin1(item(arguments, 0, Kind::Text).text);
    if (!bytes) wrong("a text that is not latin1");
    push({.kind = Kind::Text, .text = keep(std::move(*bytes))});
  } else {
    wrong(formatted("calls '{}', expected nothing but NumPy's functions that rebuild an array", function));
  }
}

void PickleMachine::build() {
  const PickleValue& state = top(Kind::Tuple);
  pop();
  const std::size_t number = pop();
  stack_.push_back(number);
  if (values_[number].kind == Kind::Dtype) return;
  PickleValue& array = top(Kind::Array);
  if (array.integer >= 0) wrong("fills an array twice");
  const PickleValue& shape = item(state, 1, Kind::Tuple);
  const std::string_view type = item(state, 2, Kind::Dtype).text;
  if (type != "u1" && type != "|u1") wrong(formatted("an array of dtype '{}', expected u1 (bytes)", type));
  if (item(state, 3, Kind::Integer).integer != 0 && shape.items.size() > 1)
    wrong("an array in column-major (Fortran) order, expected row-major");
  if (shape.items.size() > kMostDimensions) wrong(formatted("an array of {} dimensions", shape.items.size()));
  array.text = item(state, 4, Kind::Text).text;
  array.items = shape.items;
  array.integer = 1;
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    const std::int64_t size = item(shape, i, Kind::Integer).integer;
    if (size < 0 || (size > 0 && array.integer > kMostElements / size)) wrong("an array with an impossible shape");
    array.integer *= size;
  }
  if (array.integer != static_cast<std::int64_t>(array.text.size()))
    wrong(formatted("an array of {} elements, with {} bytes", array.integer, array.text.size()));
}

}  // namespace lockstep::datasets
