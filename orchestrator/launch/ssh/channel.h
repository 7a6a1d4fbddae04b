// Channel: a child process with pipes to its standard input, output and error, served by the event loop. Its
// destructor ends the process and makes no further call. REQUIRES: used on the event loop only; `ended` is
// called exactly once, after the last output.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sweep::launch {

class Channel {
 public:
  struct Ends {
    int code = -1;      // exit code; -1: ended by a signal, or never started
    std::string words;  // the end of its standard error
  };
  using OnOutput = std::function<void(std::string_view)>;
  using OnEnded = std::function<void(const Ends&)>;

  // argv[0] is looked up in PATH.
  Channel(boost::asio::io_context& io, const std::vector<std::string>& argv, OnOutput on_output,
          OnEnded on_ended);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void write(std::string bytes);
  void close_input();  // once everything is written
  void kill();         // `ended` follows

 private:
  class Process;
  std::shared_ptr<Process> process_;
};

}  // namespace sweep::launch
