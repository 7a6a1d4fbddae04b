// Bell: how a process learns that a peer has come to a meeting: a word in a file that the user's phantoms
// share. A bell may be shared by chance, so one that rings means: look again.
#pragma once
#include <cstdint>

namespace sweep::phantom {

class Bell {
 public:
  static Bell& mine();
  static void ring(std::uint32_t number);
  std::uint32_t number() const { return number_; }
  std::uint32_t rings() const;
  void wait(std::uint32_t rings, int limit_ms);  // returns at once where it has rung since

 private:
  explicit Bell(std::uint32_t number) : number_(number) {}
  std::uint32_t number_;
};

}  // namespace sweep::phantom
