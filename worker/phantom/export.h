// What makes a function one that the library answers.
#pragma once
#define PHANTOM_API extern "C" __attribute__((visibility("default")))
