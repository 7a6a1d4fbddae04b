// shared_folder FOLDER MOUNTPOINT [MILLISECONDS]: a folder as a network filesystem shows it to one host: attributes and
// names are cached for seconds, data is not, locks hold between all hosts that have the folder mounted so,
// and whoever gets a lock sees the file as it is. In the foreground, until it is unmounted. Stopped with
// SIGSTOP it is a server that does not answer. With MILLISECONDS, a file that another one replaces is not
// there for so long: its rename is not atomic.
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr double kAttributesFor = 3, kNamesFor = 1;  // seconds

std::string root;
useconds_t rename_gap = 0;

std::string at(const char* path) {
  return root + path;
}
int answer(long result) {
  return result < 0 ? -errno : 0;
}
int descriptor(const fuse_file_info* file) {
  return static_cast<int>(file->fh);
}

void* begin(fuse_conn_info*, fuse_config* config) {
  config->attr_timeout = kAttributesFor;
  config->entry_timeout = kNamesFor;
  config->direct_io = rename_gap == 0;  // it keeps heartbeat pages from being mapped
  return nullptr;
}
int get_attributes(const char* path, struct stat* out, fuse_file_info* file) {
  return answer(file ? ::fstat(descriptor(file), out) : ::lstat(at(path).c_str(), out));
}
int read_link(const char* path, char* out, size_t size) {
  const ssize_t n = ::readlink(at(path).c_str(), out, size - 1);
  if (n < 0) return -errno;
  out[n] = 0;
  return 0;
}
int make_folder(const char* path, mode_t mode) {
  return answer(::mkdir(at(path).c_str(), mode));
}
int remove_file(const char* path) {
  return answer(::unlink(at(path).c_str()));
}
int remove_folder(const char* path) {
  return answer(::rmdir(at(path).c_str()));
}
int make_symlink(const char* target, const char* path) {
  return answer(::symlink(target, at(path).c_str()));
}
int rename_to(const char* from, const char* to, unsigned int flags) {
  if (flags) return -EINVAL;
  if (rename_gap > 0 && ::access(at(from).c_str(), F_OK) == 0 && ::unlink(at(to).c_str()) == 0)
    ::usleep(rename_gap);
  return answer(::rename(at(from).c_str(), at(to).c_str()));
}
int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  return answer(::chmod(at(path).c_str(), mode));
}
int change_owner(const char* path, uid_t user, gid_t group, fuse_file_info*) {
  return answer(::lchown(at(path).c_str(), user, group));
}
int cut(const char* path, off_t size, fuse_file_info* file) {
  return answer(file ? ::ftruncate(descriptor(file), size) : ::truncate(at(path).c_str(), size));
}
int set_times(const char* path, const timespec times[2], fuse_file_info*) {
  return answer(::utimensat(AT_FDCWD, at(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}
int open_with(const char* path, int flags, mode_t mode, fuse_file_info* file) {
  const int fd = ::open(at(path).c_str(), flags & ~O_APPEND, mode);  // the kernel says where to append
  if (fd < 0) return -errno;
  file->fh = static_cast<uint64_t>(fd);
  return 0;
}
int open_file(const char* path, fuse_file_info* file) {
  return open_with(path, file->flags, 0, file);
}
int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  return open_with(path, file->flags | O_CREAT, mode, file);
}
int read_from(const char*, char* out, size_t size, off_t offset, fuse_file_info* file) {
  const ssize_t n = ::pread(descriptor(file), out, size, offset);
  return n < 0 ? -errno : static_cast<int>(n);
}
int write_to(const char*, const char* bytes, size_t size, off_t offset, fuse_file_info* file) {
  const ssize_t n = ::pwrite(descriptor(file), bytes, size, offset);
  return n < 0 ? -errno : static_cast<int>(n);
}
int state_of(const char* path, struct statvfs* out) {
  return answer(::statvfs(at(path).c_str(), out));
}
int close_file(const char*, fuse_file_info* file) {
  ::close(descriptor(file));
  return 0;
}
int sync_file(const char*, int, fuse_file_info* file) {
  return answer(::fsync(descriptor(file)));
}
int list(const char* path, void* into, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  DIR* folder = ::opendir(at(path).c_str());
  if (!folder) return -errno;
  while (const dirent* entry = ::readdir(folder))
    fill(into, entry->d_name, nullptr, 0, fuse_fill_dir_flags(0));
  ::closedir(folder);
  return 0;
}
// Locks belong to the open file, so that those of two hosts exclude each other here.
int lock(const char* path, fuse_file_info* file, int command, struct flock* wanted) {
  const int ours = command == F_GETLK ? F_OFD_GETLK : command == F_SETLK ? F_OFD_SETLK : F_OFD_SETLKW;
  wanted->l_pid = 0;
  if (::fcntl(descriptor(file), ours, wanted) != 0) return -errno;
  if (command != F_GETLK && wanted->l_type != F_UNLCK) fuse_invalidate_path(fuse_get_context()->fuse, path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4)
    return std::fprintf(stderr, "shared_folder FOLDER MOUNTPOINT [MILLISECONDS]\n"), 2;
  root = argv[1];
  if (argc == 4) rename_gap = static_cast<useconds_t>(1000 * std::atoi(argv[3]));
  fuse_operations does{};
  does.init = begin, does.getattr = get_attributes, does.readlink = read_link, does.mkdir = make_folder;
  does.unlink = remove_file, does.rmdir = remove_folder, does.symlink = make_symlink, does.rename = rename_to;
  does.chmod = change_mode, does.chown = change_owner, does.truncate = cut, does.utimens = set_times;
  does.open = open_file, does.create = create_file, does.read = read_from, does.write = write_to;
  does.statfs = state_of, does.release = close_file, does.fsync = sync_file, does.readdir = list,
  does.lock = lock;
  char name[] = "shared_folder", foreground[] = "-f", option[] = "-o", threads[] = "max_threads=10";
  char* words[] = {name, foreground, option, threads, argv[2], nullptr};
  return fuse_main(5, words, &does, nullptr);
}
