// Python: where the process that uses a phantom is one, it learns to compute small whole numbers on the host
// (small_integers.py).
#pragma once
#include <string_view>

namespace sweep::phantom {

std::string_view small_integers();  // the text of small_integers.py

// Runs it, once, if PyTorch is imported and this thread may run Python.
void teach_python();

}  // namespace sweep::phantom
