// SWEEP_WITHOUT_DESCRIPTORS: whether a test may take every file descriptor away. Not under UBSan, which looks
// at the memory of an object through a pipe of its own and takes a refusal for a bad object.
#pragma once

#define SWEEP_WITHOUT_DESCRIPTORS 1
#ifdef __has_feature
#if __has_feature(undefined_behavior_sanitizer)
#undef SWEEP_WITHOUT_DESCRIPTORS
#define SWEEP_WITHOUT_DESCRIPTORS 0
#endif
#endif
