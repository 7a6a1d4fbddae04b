-- What `sweep calibrate` measured, the latest under each name.
CREATE TABLE hardware_profile (
  name TEXT PRIMARY KEY,
  hardware TEXT NOT NULL,
  created_unix_ns INTEGER NOT NULL,
  profile TEXT NOT NULL
) STRICT;
