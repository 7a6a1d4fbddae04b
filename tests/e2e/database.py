"""What must hold of a results database whatever happened to the programs that wrote it."""
import sqlite3


def rows(db, sql):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
        return connection.execute(sql).fetchall()


def outcomes(db):
    """trial -> outcome of the view `results`; a trial without a result has none."""
    return {trial: outcome for trial, outcome in rows(db, "select trial, outcome from results")}


# Not final: the fault of the machine or of people; `sweep resume` runs such a trial again.
NOT_FINAL = {None, "node_lost", "cancelled"}


def unfinished(db):
    return sorted(trial for trial, outcome in outcomes(db).items() if outcome in NOT_FINAL)


def check(db):
    """A sound file; one row per trial; no record counted twice."""
    assert rows(db, "pragma integrity_check") == [("ok",)], rows(db, "pragma integrity_check")
    assert rows(db, "pragma foreign_key_check") == [], rows(db, "pragma foreign_key_check")
    several = rows(db, "select sweep, trial, count(*) from results group by sweep, trial having count(*) > 1")
    assert not several, f"trials with more than one final result: {several}"
    twice = rows(db, "select attempt, count(*) from result group by attempt having count(*) > 1")
    assert not twice, f"attempts with more than one result: {twice}"
