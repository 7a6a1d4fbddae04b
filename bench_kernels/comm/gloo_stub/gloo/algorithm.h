// Declares the part of Gloo's headers that LibTorch's ProcessGroupGloo.hpp needs and the wheel does not ship
// (the code is in libtorch_cpu). Declarations only; nothing here is ever constructed by this program.
// gloo_backend.cpp checks the sizes that follow.
#pragma once
