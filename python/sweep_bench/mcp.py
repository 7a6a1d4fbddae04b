"""An MCP server over `sweep --json`: plan, look, run, answer for programs that use tools. `pip install 'sweep-bench[mcp]'`, then the
command `sweep-mcp` over standard input and output. Its folder is where grids and databases are."""
from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import typing

from . import _answers
from ._programs import SweepError, ask, program, text
from ._running import plan as _plan

RULES = ("Plan, look, run, answer. Never call run before the user has seen the plan of the same grid: run wants the word that plan gave. "
         "null means not measured. Times of a rehearsal are modelled.")


def _word(grid: str) -> str:
    """What only a plan of this text gives: a run without its plan is refused."""
    return hashlib.sha256(grid.encode()).hexdigest()[:12]


def plan(grid_file: str, db: str = "sweep.db") -> dict[str, typing.Any]:
    """What a grid file would run, what is pruned and why; starts no trial. Show it to the user: `word` lets run start it."""
    found = _plan(grid_file, db=db)
    keys = ("id", "admitted", "rule", "reason", "predicted_bytes", "predicted_ms", "predicted_seconds")
    with open(grid_file, encoding="utf-8") as file:
        word = _word(file.read())
    return {"word": word, "would_run": len(found.admitted), "predicted_seconds": found.predicted_seconds,
            "trials": [{key: each.get(key) for key in keys} for each in found.trials[:100]], "of": len(found)}


def run(grid_file: str, word: str, rehearse: bool = False, db: str = "sweep.db") -> str:
    """Starts a planned grid in the background; rehearse: on phantom GPUs. `status` follows it, `stop` ends it."""
    with open(grid_file, encoding="utf-8") as file:
        if word != _word(file.read()):
            raise ValueError("this grid has not been planned as it is now: call plan, show it, and pass its word")
    words = [program("sweep"), "run", grid_file, "--db", db, "--detach", "--quiet", *(["--rehearse"] if rehearse else [])]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise ValueError(done.stderr.strip())
    return done.stderr.strip()


def status(sweep: str = "", db: str = "sweep.db") -> dict[str, typing.Any]:
    """Counts by outcome, the best so far, who runs it, GPU-hours."""
    return ask("status", *([sweep] if sweep else []), "--db", db)


def stop(sweep: str, db: str = "sweep.db") -> str:
    """Ends a run after what it has started; `run` goes on from there."""
    return text("stop", sweep, "--db", db) or "asked to stop"


def best(sweep: str = "", by: str = "", metric: str = "", db: str = "sweep.db") -> list[dict[str, typing.Any]]:
    """The best configuration of each group, its ties and intervals."""
    return _answers.best(sweep or None, by=by or None, metric=metric or None, db=db)


def explain(trial: str, sweep: str = "", db: str = "sweep.db") -> dict[str, typing.Any]:
    """One trial: configuration, the plan's decision, attempts, memory, evidence."""
    return _answers.explain(trial, sweep or None, db=db)


def query(sql: str, db: str = "sweep.db") -> str:
    """One SELECT over the view results (a row each trial; columns: docs/fields.md), as JSON."""
    return json.dumps(ask("query", sql, "--db", db))


def sweeps(db: str = "sweep.db") -> list[dict[str, typing.Any]]:
    """The sweeps of a database."""
    return _answers.sweeps(db)


def server() -> typing.Any:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    made = MCPServer("sweep", instructions=RULES)

    def told(tool: typing.Callable[..., typing.Any]) -> typing.Callable[..., typing.Any]:
        """With errors that the caller may see."""
        @functools.wraps(tool)
        def call(*given: typing.Any, **named: typing.Any) -> typing.Any:
            try:
                return tool(*given, **named)
            except (SweepError, ValueError, OSError) as error:
                raise ToolError(str(error)) from error
        return call

    for tool in (plan, run, status, stop, best, explain, query, sweeps):
        made.tool()(told(tool))
    return made


def main() -> None:
    server().run()


if __name__ == "__main__":
    main()
