"""An MCP server over `sweep --json`: plan, look, run, answer for programs that use tools. `pip install 'sweep-bench[mcp]'`, then the
command `sweep-mcp` over standard input and output. Its folder is where grids and databases are; without a db its tools take
$SWEEP_DB, else sweep.db."""
from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import subprocess
import typing

from . import _answers
from ._answers import database
from ._programs import SweepError, ask, error_of, program, words_of
from ._running import Plan, grid_word
from ._running import plan as _plan

RULES = ("Plan, look, run, answer. Never call run before the user has seen the plan of the same grid: run wants the word that plan gave. "
         "null means not measured. Times of a rehearsal are modelled.")
MOST_ROWS, MOST_CHARACTERS, MOST_SECONDS = 500, 100_000, 30  # of the answer to a query


def _db(db: str) -> str:
    return database(db or None)


def _word(grid_file: str, rehearse: bool, db: str) -> tuple[str, Plan]:
    """A plan, and what only the same plan gives again. The ids of trials cover the files that the grid names, its text the rest."""
    text = pathlib.Path(grid_file).read_bytes()
    found = _plan(grid_file, db=_db(db))
    what = [sorted(each["id"] for each in found.admitted), rehearse, os.path.realpath(_db(db))]
    return hashlib.sha256(text + json.dumps(what).encode()).hexdigest()[:12], found


def plan(grid_file: str, rehearse: bool = False, db: str = "") -> dict[str, typing.Any]:
    """What a grid file would run, what is pruned and why; starts no trial. Show it to the user: `word` lets run start it, with the same
    rehearse and db. predicted_seconds: without the `untimed` trials, whose time nothing predicts."""
    word, found = _word(grid_file, rehearse, db)
    keys = ("id", "admitted", "rule", "reason", "predicted_bytes", "predicted_ms", "predicted_seconds")
    return {"word": word, "would_run": len(found.admitted), "predicted_seconds": found.predicted_seconds, "untimed": found.untimed,
            "trials": [{key: each.get(key) for key in keys} for each in found.trials[:100]], "of": len(found)}


def run(grid_file: str, word: str, rehearse: bool = False, db: str = "") -> str:
    """Starts a planned grid in the background; rehearse: on phantom GPUs. `status` follows it, `stop` ends it."""
    if word != _word(grid_file, rehearse, db)[0]:
        raise ValueError("this has not been planned as it is now, with this rehearse and db: call plan, show it, and pass its word")
    words = [program("sweep"), "run", grid_word(grid_file)[0], f"--db={_db(db)}", "--detach", "--quiet", *(["--rehearse"] if rehearse else [])]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise ValueError(done.stderr.strip())
    return done.stderr.strip()


def status(sweep: str = "", db: str = "") -> dict[str, typing.Any]:
    """Counts by outcome, the best so far, who runs it, GPU-hours."""
    return ask("status", *([sweep] if sweep else []), db=_db(db))


def stop(sweep: str, db: str = "") -> str:
    """Ends a run after what it has started; `run` goes on from there. Says what was stopped, or that nothing was."""
    done = subprocess.run(words_of("stop", sweep, db=_db(db)), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise error_of(done)
    return done.stderr.strip()


def best(sweep: str = "", by: str = "", metric: str = "", db: str = "") -> list[dict[str, typing.Any]]:
    """The best configuration of each group, its ties and intervals."""
    return _answers.best(sweep or None, by=by or None, metric=metric or None, db=_db(db))


def explain(trial: str, sweep: str = "", db: str = "") -> dict[str, typing.Any]:
    """One trial: configuration, the plan's decision, attempts, memory, evidence."""
    return _answers.explain(trial, sweep or None, db=_db(db))


def query(sql: str, db: str = "") -> dict[str, typing.Any]:
    """One SELECT over the view results (a row each trial; columns: docs/fields.md). cut: there are more rows than these, 500 or 100000
    characters at most. It may take 30 s."""
    words = words_of("query", sql, db=_db(db), seconds=MOST_SECONDS)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        said = process.stdout.read(MOST_CHARACTERS + 1)
        cut = len(said) > MOST_CHARACTERS
        if cut:
            process.kill()
        problem = process.stderr.read()
    if process.returncode != 0 and not cut:
        raise error_of(subprocess.CompletedProcess(words, process.returncode, "", problem))
    lines = said.split("\n")[:-1]  # a row each; the last one may be a part of one
    rows = [json.loads(line.rstrip(",")) for line in lines if line.startswith("{")]
    return {"rows": rows[:MOST_ROWS], "cut": cut or len(rows) > MOST_ROWS}


def sweeps(db: str = "") -> list[dict[str, typing.Any]]:
    """The sweeps of a database."""
    return _answers.sweeps(_db(db))


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
