// The option table as data, for completion and the manual page: what the parser holds, and nothing else.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace sweep::cli {

std::string bash_completion(const CLI::App&);
std::string zsh_completion(const CLI::App&);
std::string fish_completion(const CLI::App&);
std::string manual_page(const CLI::App&);  // roff, section 1

}  // namespace sweep::cli
