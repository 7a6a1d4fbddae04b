-- Columns of the public row in one piece, 4096 entries of a sweep (key >> 12) at a time, so that `best` reads the few
-- columns it needs of a hundred thousand results in milliseconds. Everything in it follows from the other tables: packed
-- holds no entry that is in `loose`, and any change of a result or a plan entry, whoever makes it, puts the entry there.
-- A column all of whose values are its default, or NULL, has no row. orchestrator/store/packed_column.h has the form.
CREATE TABLE packed (
  sweep INTEGER NOT NULL REFERENCES sweep(id),
  name  TEXT NOT NULL,                          -- a column of schema/columns.h, or `entry`: keys of plan_entry
  block INTEGER NOT NULL,
  data  BLOB NOT NULL,
  PRIMARY KEY (sweep, name, block)
) STRICT;

-- Plan entries whose packed columns, if any, are out of date: they are read from the tables.
CREATE TABLE loose (
  entry INTEGER PRIMARY KEY
) STRICT;
INSERT INTO loose SELECT key FROM plan_entry;

-- Not OR IGNORE: inside a trigger the conflict clause of the statement that fires it holds instead.
CREATE TRIGGER loose_entry_added AFTER INSERT ON plan_entry BEGIN
  INSERT INTO loose SELECT NEW.key WHERE NEW.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_entry_changed AFTER UPDATE ON plan_entry BEGIN
  INSERT INTO loose SELECT NEW.key WHERE NEW.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_entry_gone AFTER DELETE ON plan_entry BEGIN
  DELETE FROM packed WHERE sweep = OLD.sweep AND block = OLD.key >> 12;
  INSERT INTO loose SELECT key FROM plan_entry
    WHERE key >> 12 = OLD.key >> 12 AND sweep = OLD.sweep AND key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_result_added AFTER INSERT ON result BEGIN
  INSERT INTO loose SELECT entry FROM attempt WHERE id = NEW.attempt AND entry NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_result_changed AFTER UPDATE ON result BEGIN
  INSERT INTO loose SELECT entry FROM attempt WHERE id = NEW.attempt AND entry NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_result_gone AFTER DELETE ON result BEGIN
  INSERT INTO loose SELECT entry FROM attempt WHERE id = OLD.attempt AND entry NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_trial_changed AFTER UPDATE ON trial BEGIN
  INSERT INTO loose SELECT key FROM plan_entry WHERE trial = NEW.key AND key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_sweep_renamed AFTER UPDATE OF name ON sweep BEGIN
  INSERT INTO loose SELECT key FROM plan_entry WHERE sweep = NEW.id AND key NOT IN (SELECT entry FROM loose);
END;
