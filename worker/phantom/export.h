// PHANTOM_API marks the functions that the library exports.
#pragma once
#define PHANTOM_API extern "C" __attribute__((visibility("default")))
