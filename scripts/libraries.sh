# Sourced by package and gpu_bundle: the libraries that programs need where nothing of ours is installed.

# Libraries of glibc are never taken along: they must be of one version with the loader.
glibc_names='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nss_.*))\.so'

# copy_libraries FOLDER LEFT PROGRAM...: every library that the programs load and that is neither glibc's nor matches LEFT (an
# extended regular expression over names). The caller sees to it that the loader finds FOLDER.
copy_libraries() {
  local folder=$1 left=$2 program name path
  shift 2
  for program in "$@"; do
    ldd "$program" | awk '$2 == "=>" { print $1, $3 }' | while read -r name path; do
      if [[ $name =~ $glibc_names || $name =~ $left ]]; then continue; fi
      if [ ! -f "$path" ]; then printf '%s needs %s, which is not here\n' "$program" "$name" >&2; exit 1; fi
      install -m 755 "$path" "$folder/$name"
    done
  done
}
