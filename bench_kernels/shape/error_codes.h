// Codes of models, hardware and files that describe them. The subject is the name, dimension, key or tensor
// that is wrong.
#pragma once
#include "base/expected.h"

namespace sweep::shape::codes {

// Names of the catalogues.
inline constexpr ErrorCode kUnknownModel{"shape.unknown_model"};
inline constexpr ErrorCode kUnknownHardware{"shape.unknown_hardware"};
inline constexpr ErrorCode kUnknownFamily{"shape.unknown_family"};

// Dimensions.
inline constexpr ErrorCode kOutOfRange{"shape.out_of_range"};
inline constexpr ErrorCode kNotDivisible{"shape.not_divisible"};
inline constexpr ErrorCode kOdd{"shape.odd"};
inline constexpr ErrorCode kNoExperts{"shape.no_experts"};  // of a family without experts

// Ranks: the subject is the size that an equation of the rank algebra gives.
inline constexpr ErrorCode kBelowOne{"shape.below_one"};
inline constexpr ErrorCode kNotWhole{"shape.not_whole"};
inline constexpr ErrorCode kTooLarge{"shape.too_large"};
inline constexpr ErrorCode kUnequal{"shape.unequal"};

// A config.json of Hugging Face, and a hardware profile.
inline constexpr ErrorCode kNotJson{"shape.not_json"};
inline constexpr ErrorCode kMissingKey{"shape.missing_key"};
inline constexpr ErrorCode kWrongType{"shape.wrong_type"};
inline constexpr ErrorCode kUnsupported{"shape.unsupported"};  // the step does not have it
inline constexpr ErrorCode kNotAProfile{"shape.not_a_profile"};

// A safetensors file.
inline constexpr ErrorCode kBadLength{"safetensors.bad_length"};  // of the header
inline constexpr ErrorCode kBadHeader{"safetensors.bad_header"};  // not what the format has there
inline constexpr ErrorCode kRepeated{"safetensors.repeated"};     // a name or a key
inline constexpr ErrorCode kUnknownDtype{"safetensors.unknown_dtype"};
inline constexpr ErrorCode kWrongSize{"safetensors.wrong_size"};  // its bytes are not shape x dtype
inline constexpr ErrorCode kOverlap{"safetensors.overlap"};
inline constexpr ErrorCode kHole{"safetensors.hole"};  // between tensors, or after the last
inline constexpr ErrorCode kTruncated{"safetensors.truncated"};

// Lists of a pipeline's actions.
inline constexpr ErrorCode kListCount{"schedule.list_count"};  // not one list for each rank
inline constexpr ErrorCode kUnknownAction{"schedule.unknown_action"};
inline constexpr ErrorCode kActionTwice{"schedule.action_twice"};
inline constexpr ErrorCode kActionMissing{"schedule.action_missing"};  // what it needs comes later or never
inline constexpr ErrorCode kNoReceive{"schedule.no_receive"};
inline constexpr ErrorCode kNoPeer{"schedule.no_peer"};
inline constexpr ErrorCode kMessageOrder{"schedule.message_order"};  // of the two ends
inline constexpr ErrorCode kDeadlock{"schedule.deadlock"};

}  // namespace sweep::shape::codes
