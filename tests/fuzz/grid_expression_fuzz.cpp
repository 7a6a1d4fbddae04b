// Any bytes as an expression: code or an error that points into the text; code runs within its stack.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "orchestrator/grid/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sweep::grid;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Scope scope;
  const auto code = parse(text, scope);
  if (!code) {
    if (code.error().at > size || code.error().message.empty()) std::abort();
    return 0;
  }
  Point point;
  point.cells.assign(scope.size(), Cell{3});
  point.held.assign(scope.size(), Presence::kValue);
  for (std::size_t slot = 0; slot < scope.size(); ++slot) {
    if (scope.at(static_cast<Slot>(slot)).type == Type::kText) point.cells[slot].i = scope.words.id("fp32");
    if (scope.at(static_cast<Slot>(slot)).type == Type::kBool) point.cells[slot].i = 1;
  }
  Cell value{0};
  Failure failure;
  if (evaluate(*code, point, value, failure)) {
    (void)value_text(value, code->type(), scope.words);
  } else if (explain(failure, *code, scope, point).empty()) {
    std::abort();
  }
  return 0;
}
