// Text for people and for shells.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sweep {

// "0.5 KiB", "12.0 MiB", "79.2 GiB".
std::string human_bytes(double bytes);
// "1 configuration", "3 configurations".
std::string counted(std::int64_t number, std::string_view noun);
// A word as a POSIX shell reads it back unchanged. Plain words stay as they are; others come in single
// quotes.
std::string shell_word(std::string_view word);
// The hash FNV-1a of 64 bits: stable across builds and machines, and no proof of anything.
std::uint64_t fnv1a(std::string_view bytes);
// Equal where the case of ASCII letters does not count.
bool same_word(std::string_view, std::string_view);
// Letters, digits, - and _ only: a name that is never a path.
bool is_plain_name(std::string_view);
// One field of CSV (RFC 4180), in quotes where it needs them.
std::string csv_field(std::string_view);
// A time limit in the forms of sbatch: "1-02:03:04", "1-02" (days and hours), "02:03:04", "03:04" (minutes and seconds), "5"
// (minutes). nullopt: it is none of these.
std::optional<double> limit_seconds(std::string_view text);

}  // namespace sweep
