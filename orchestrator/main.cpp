#include "orchestrator/cli/app.h"

int main(int argc, char** argv) {
  return sweep::cli::run(argc, argv);
}
