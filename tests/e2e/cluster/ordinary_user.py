"""A test run by root as an ordinary user, whom a copy of /etc/passwd in a mount namespace makes known to this machine alone."""
import os
import pathlib
import subprocess
import sys
import tempfile

USER, UID = "sweep-tester", 64123
WORD = "--ordinary-user"


def asked():
    """Whether this test was called so, by root."""
    return WORD in sys.argv and os.geteuid() == 0


def reaches(path):
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in (path, *path.parents))


def again():
    """Runs the calling script so, with its words; its exit code."""
    with tempfile.TemporaryDirectory(prefix="sweep-passwd-") as folder:
        passwd = pathlib.Path(folder) / "passwd"
        passwd.write_text(pathlib.Path("/etc/passwd").read_text() + f"{USER}:x:{UID}:{UID}::/nonexistent:/bin/sh\n")
        passwd.chmod(0o644)
        words = [word for word in sys.argv[1:] if word != WORD]
        return subprocess.run(["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/passwd && shift && exec "$@"', "sh", passwd,
                               "setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all", sys.executable,
                               pathlib.Path(sys.argv[0]).resolve(), *words], check=False, cwd="/").returncode
