"""Leaves out what processes with PyTorch import and these scripts do not use: a script imports this module before its trainer.

- PyTorch's compiler, imported with the first optimizer or process group, takes 1.9 of 4.5 s of CPU time. FSDP2, transformers and
  DeepSpeed's stages 1 and 2 need it.
- Trainers import whatever is installed: DeepSpeed MLflow (6 of 9 s), transformers' Trainer DeepSpeed and peft (7 of 13), Lightning's metrics
  transformers (2 of 7). All of it is in the Python of the tests, in few of their users'.

With SWEEP_LONG in the environment it leaves out nothing."""
import os
import sys
import types
from typing import Any

EVERYTHING = bool(os.environ.get("SWEEP_LONG"))


class Nothing(types.ModuleType):
    """A module, a class of it that nothing is of, or a function that does nothing; as a decorator it leaves the function as it is."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {}) if name[0].isupper() else Nothing(f"{self.__name__}.{name}")

    def __call__(self, *words, **_):
        return words[0] if words and callable(words[0]) else self


def without_compiler():
    if not EVERYTHING:
        sys.modules.setdefault("torch._dynamo", Nothing("torch._dynamo"))


def without(*modules):
    """As if they were not installed."""
    missing: dict[str, Any] = dict.fromkeys(modules)
    if not EVERYTHING:
        sys.modules.update(missing)


def with_nothing_in(module):
    """For those who look whether it is installed, and import it without a look at what they find."""
    if not EVERYTHING:
        sys.modules[module] = Nothing(module)
