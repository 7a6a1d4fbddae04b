"""Invariants of a results database, whatever happened to the programs that wrote it."""
import pathlib
import sqlite3

FINISHED, RETIRED = 3, 4  # schema/outcome.h, State


def rows(db, sql):
    connection = sqlite3.connect(pathlib.Path(db).resolve().as_uri() + "?mode=ro", uri=True)  # whatever the path holds
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def outcomes(db):
    """trial -> outcome of every trial that has a final result, as the public view tells it."""
    return dict(rows(db, "select trial, outcome from results where outcome is not null"))


def trials(db):
    """Every trial of the plan."""
    return {trial for (trial,) in rows(db, f"select t.id from plan_entry p join trial t on t.key = p.trial "
                                           f"where p.state <> {RETIRED}")}


def unfinished(db):
    return sorted(trial for (trial,) in rows(db, "select t.id from plan_entry p join trial t on t.key = p.trial "
                                                 f"where p.state not in ({FINISHED}, {RETIRED})"))


def check(db):
    """A sound file; no trial and no attempt with two results; every finished trial's verdict is where it says."""
    def none(sql, what):
        found = rows(db, sql)
        assert not found, f"{what}: {found[:5]}"
    assert rows(db, "pragma integrity_check") == [("ok",)], rows(db, "pragma integrity_check")
    none("pragma foreign_key_check", "broken foreign keys")
    none("select sweep, trial, count(*) from results group by sweep, trial having count(*) > 1", "trials with several results")
    none(f"select p.key from plan_entry p left join result r on r.attempt = p.final_attempt "
         f"where p.admitted and p.state = {FINISHED} and (r.attempt is null or r.outcome <> p.outcome)",
         "finished trials without the result of their final attempt")
    none(f"select t.id from plan_entry p join trial t on t.key = p.trial where p.state = {FINISHED} and t.id not in "
         "(select trial from results where outcome is not null)", "finished trials that the view does not show")
