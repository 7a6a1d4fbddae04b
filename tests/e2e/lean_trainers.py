"""Trainers import what is installed beside them: DeepSpeed imports MLflow, transformers' Trainer imports DeepSpeed, Lightning imports
transformers. All of that is in the Python of the tests, and takes a quarter to a half of a process that trains for some steps."""
import os
import pathlib

HIDDEN = {"huggingface": "deepspeed mlflow peft bitsandbytes", "lightning": "deepspeed mlflow", "deepspeed": "mlflow"}
NO_TRANSFORMERS = pathlib.Path(__file__).resolve().parent / "trainers/no_transformers"  # of a version that torchmetrics does not import


def hides(trainer, environment):
    """The variables, made of those of an environment, under which the trainer does not find them (tests/support/sweep_tests.pth)."""
    if trainer not in HIDDEN:
        return {}
    variables = {"SWEEP_TEST_HIDES": HIDDEN[trainer]}
    if trainer == "lightning":
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(NO_TRANSFORMERS), environment.get("PYTHONPATH")]))
    return variables
