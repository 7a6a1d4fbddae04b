"""The base of gpu_check: the GPU, PyTorch, the programs. Each fact that is wrong comes with what to do about it."""
import functools
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCH, CUDA, DRIVER = "2.11.0", "13.0", 580  # the first driver of CUDA 13
GIB = 1 << 30

# Whole words of the driver's name of a GPU -> the catalogue's name (`sweep hardware`); the first match counts.
NAMES = [("GB300", "gb300-288gb"), ("GB200", "gb200-186gb"), ("B300", "b300-288gb"), ("B200", "b200-180gb"),
         ("H200", "h200-141gb"), ("H100 NVL", "h100-sxm-96gb"), ("H100 PCIe", "h100-pcie-80gb"), ("H100", "h100-sxm-80gb"),
         ("A100-SXM4-40GB", "a100-40gb"), ("A100-PCIE-40GB", "a100-40gb"), ("A100", "a100-80gb"), ("A10G", "a10g-24gb"),
         ("L4", "l4-24gb")]


def build_folder():
    """The programs of this repository; a folder that gpu_bundle made holds them itself."""
    built = ROOT / "build" / "release"
    return built if built.exists() else ROOT


def torch_folder():
    """The folder from which this Python would import torch, found without importing it."""
    found = importlib.util.find_spec("torch")
    return pathlib.Path(found.submodule_search_locations[0]) if found else None


def library_path(build):
    """The value that LD_LIBRARY_PATH must have: libraries of the bundle, of torch, of NVIDIA's wheels; then what it held before."""
    folders = [build / "lib"]
    torch = torch_folder()
    if torch:
        nvidia = importlib.util.find_spec("nvidia")
        roots = [pathlib.Path(place) for place in nvidia.submodule_search_locations] if nvidia else []
        folders += [torch / "lib", *sorted(lib for root in roots for lib in root.glob("*/lib"))]
    before = os.environ.get("LD_LIBRARY_PATH")
    return ":".join([*(str(folder) for folder in folders if folder.is_dir()), *([before] if before else [])])


def gpus():
    """The driver's list: name, driver, memory, what of it is used and what the driver keeps (no program gets that), in bytes. Of the
    GPUs that CUDA_VISIBLE_DEVICES names, where it names some: nvidia-smi does not read it. MIG devices are no GPUs of its list."""
    fields = "name,driver_version,memory.total,memory.used,compute_cap,memory.reserved"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    only = ["-i", visible] if visible and "MIG" not in visible else []
    try:
        listed = subprocess.run(["nvidia-smi", *only, f"--query-gpu={fields}", "--format=csv,noheader,nounits"], capture_output=True,
                                text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [[part.strip() for part in line.split(",")] for line in listed.stdout.splitlines()] if listed.returncode == 0 else []
    return [dict(name=row[0], driver=row[1], memory_bytes=int(row[2]) << 20, used_bytes=int(row[3]) << 20, capability=row[4],
                 reserved_bytes=int(row[5]) << 20 if row[5].isdigit() else 0)
            for row in rows if len(row) == 6 and row[2].isdigit() and row[3].isdigit()]


def c_compiler():
    """What torch.compile compiles the host's part with; None: it cannot."""
    return shutil.which("cc") or shutil.which("gcc")


def usable_bytes():
    """Memory of the first GPU as CUDA counts it, half a GiB less than the driver's on an H100; None: this torch cannot say."""
    code = "import torch; print(torch.cuda.mem_get_info(0)[1])"
    try:
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return int(said.stdout) if said.returncode == 0 and said.stdout.strip().isdigit() else None


def catalogue_entry(hardware):
    entries = json.loads((ROOT / "bench_kernels" / "shape" / "hardware.json").read_text())
    return next((entry for entry in entries if entry["hardware"] == hardware), None) or sys.exit(f"the catalogue has no '{hardware}'")


class Machine:
    def __init__(self, build, hardware, phantom):
        self.build, self.bin, self.phantom = build, build / "bin", phantom
        self.gpus = [] if phantom else gpus()
        self.hardware = hardware or (self.named() if self.gpus else "h100-sxm-80gb" if phantom else None)
        # In a repository the programs know where their libraries are; a bundle has a folder lib and none of that.
        moved = {"LD_LIBRARY_PATH": library_path(build)} if (build / "lib").is_dir() else {}
        self.environment = {**os.environ, **moved, "SWEEP_SITE": "/nonexistent"}

    @functools.cached_property
    def usable_bytes(self):
        return usable_bytes() if self.gpus else None

    def keep_kernels(self, folder):
        """Kernels that a step compiles are there for the next: in the user's cache, or in this folder where there is none."""
        if not os.access(os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME") or "", os.W_OK):
            self.environment["XDG_CACHE_HOME"] = folder

    def named(self):
        return next((hardware for part, hardware in NAMES if re.search(rf"\b{part}\b", self.gpus[0]["name"])), None)

    def small(self):
        return bool(self.hardware) and self.hardware.endswith(("-16gb", "-24gb", "-32gb"))

    def answer(self, *command):
        """(it worked, what it said)"""
        try:
            done = subprocess.run([str(word) for word in command], env=self.environment, capture_output=True, text=True, timeout=120,
                                  stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as error:
            return False, str(error)
        return done.returncode == 0, (done.stdout.strip() or done.stderr.strip())[-500:]

    def gpu_facts(self):
        if self.phantom:
            yield "GPU", self.hardware is not None, f"PHANTOM GPU of {self.hardware}: no figure below is a measurement", ""
            return
        names = ", ".join(gpu["name"] for gpu in self.gpus)
        yield "GPU", bool(self.gpus), names or "none", "nvidia-smi must list a GPU; without one: gpu_check --phantom"
        if not self.gpus:
            return
        first = self.gpus[0]
        yield "catalogue", self.hardware is not None, self.hardware or "no such GPU", "name the nearest with --hardware (`sweep hardware`)"
        yield "driver", int(first["driver"].split(".")[0]) >= DRIVER, first["driver"], f"torch {TORCH}+cu130 needs driver {DRIVER} or later"
        free = (first["memory_bytes"] - first["used_bytes"]) / GIB
        yield "memory", first["used_bytes"] < GIB, f"{free:.1f} of {first['memory_bytes'] / GIB:.1f} GiB free", \
            "end the processes that nvidia-smi shows on the GPU: peaks and limits are wrong beside them"
        yield "CUDA", self.usable_bytes is not None, f"{(self.usable_bytes or 0) / GIB:.2f} GiB are usable", \
            "torch.cuda.mem_get_info() failed: see whether this python3 reaches the GPU"

    def torch_fact(self):
        folder = torch_folder()
        text = (folder / "version.py").read_text() if folder else ""
        version = re.search(r"__version__ = '([^']+)'", text)
        cuda = re.search(r"^cuda[^=]*= '([^']+)'", text, re.M)
        said = f"{version.group(1)}, CUDA {cuda.group(1) if cuda else 'none'}, {folder}" if version else f"none for {sys.executable}"
        right = bool(version and cuda) and version.group(1).split("+")[0] == TORCH and cuda.group(1) == CUDA
        return "torch", right, said, f"start gpu_check with the Python that has torch {TORCH}+cu130 (pip install torch=={TORCH})"

    def facts(self):
        """(what, is it well, what was found, what to do)"""
        yield from self.gpu_facts()
        yield self.torch_fact()
        libraries = "a library is missing or too old: glibc 2.36 or later is needed (Debian 12, Ubuntu 24.04)"
        yield "sweep", *self.answer(self.bin / "sweep", "--version"), libraries
        well, said = self.answer(self.bin / "sweep-agent", "--probe")
        yield "sweep-agent", well, "answers" if well else said, libraries
        well, said = self.answer(self.bin / "sweep-rank", "facts")
        yield "sweep-rank", well, "answers" if well else said, libraries
        plugin = self.bin / "libsweep_cuda.so"
        yield "plug-in", plugin.exists(), str(plugin), "build it: scripts/quickstart, or ninja -C build/release sweep_cuda"
        phantoms = self.build / "phantom" / "libsweep_phantom.so"
        yield "phantoms", phantoms.exists(), str(phantoms), "build sweep_phantom_cuda and sweep_phantom_nvidia-ml"
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
        yield "host", memory >= 8, f"{os.cpu_count()} cores, {memory:.0f} GiB", "8 GiB are needed; what is offloaded lies there"
        shared = shutil.disk_usage("/dev/shm").total / GIB
        yield "/dev/shm", shared >= 0.5, f"{shared:.1f} GiB", "give the container --shm-size=1g or more"
        yield "C compiler", True, c_compiler() or "none: torch.compile is left out of step 8", ""

    def surroundings(self):
        return [dict(what=what, ok=ok, found=found, **({} if ok else {"do": do})) for what, ok, found, do in self.facts()]

    def phantom_of_this(self):
        """The catalogue's phantom with the memory that CUDA has on the GPU: a rehearsal must run out where the GPU does."""
        entry = catalogue_entry(self.hardware)
        if not self.gpus:
            return entry
        return {**entry, "memory_bytes": self.usable_bytes or self.gpus[0]["memory_bytes"] - self.gpus[0]["reserved_bytes"]}
