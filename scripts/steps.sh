# Sourced by quickstart and test: runs named steps, remembers how long each took, and knows how many compile jobs fit.
# One clone does not compile again what another has compiled: paths below the clone count as relative.
# What is not in the cache is not preprocessed twice: the compiler says what it read.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$repo} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1} CCACHE_DEPEND=${CCACHE_DEPEND:-1}
step_names=()
step_seconds=()

# step NAME COMMAND...: runs the command, keeps its exit code and its wall time.
step() {
  local name=$1 started code=0
  shift
  printf '\n== %s\n' "$name" >&2
  started=$EPOCHREALTIME
  "$@" || code=$?
  step_names+=("$name")
  step_seconds+=("$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')")
  return "$code"
}

print_step_times() {
  local i total
  printf '\ntime by step\n' >&2
  for i in "${!step_names[@]}"; do
    printf '  %8s s  %s\n' "${step_seconds[$i]}" "${step_names[$i]}" >&2
  done
  total=$(printf '%s\n' "${step_seconds[@]:-0}" | awk '{ s += $1 } END { printf "%.1f", s }')
  printf '  %8s s  total\n' "$total" >&2
}

# One compile job of the LibTorch half takes about 2 GB; memory, not only cores, bounds how many run at once.
compile_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable/ { print int($2 / (2.2 * 1024 * 1024)) }' /proc/meminfo)
  if [ "${by_memory:-1}" -lt 1 ]; then by_memory=1; fi
  if [ "$by_memory" -lt "$cores" ]; then echo "$by_memory"; else echo "$cores"; fi
}

# The Python that has the packages of scripts/requirements*.txt: the venv, or the one beside a given SWEEP_TORCH.
venv_python() {
  local beside
  if [ -n "${SWEEP_TORCH:-}" ]; then
    beside=$(cd "$SWEEP_TORCH/../../../.." 2>/dev/null && pwd)/bin/python
    if [ -x "$beside" ]; then echo "$beside"; else command -v python3; fi
  else
    echo "$repo/build/venv/bin/python"
  fi
}
