// The picture of a Transfer: each shared configuration by its value in A and in B, as shares of the best of
// its cell. On the diagonal both agree; a star is what A would choose.
#pragma once
#include "orchestrator/answers/statistics/transfer.h"

namespace sweep::answers {

struct TransferNames {
  std::string a, b;
};
std::string transfer_svg(const Transfer&, const TransferOptions&, const TransferNames&);

}  // namespace sweep::answers
