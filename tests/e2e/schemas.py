"""The schemas of what commands print with --json, for the tests that have a document."""
import importlib.util
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "schema" / "json"


def can_be_checked():
    """False where the Python package jsonschema is missing (scripts/setup test installs it)."""
    return importlib.util.find_spec("jsonschema") is not None


def check(command, document):
    """Raises an error where the document does not follow the schema of that command."""
    import jsonschema
    schema = json.loads((FOLDER / f"{command}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
