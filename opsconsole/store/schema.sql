-- One file per cluster. `journal` only grows: triggers refuse updates, and deletes of what is not archived.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE journal (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    tick    INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,           -- cluster time
    wall_ms INTEGER NOT NULL,           -- for people
    role    TEXT NOT NULL CHECK (role IN ('observation', 'decision', 'command')),
    kind    TEXT NOT NULL,
    body    BLOB NOT NULL
);
CREATE INDEX journal_wall ON journal (wall_ms);
CREATE TRIGGER journal_is_append_only BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_kept BEFORE DELETE ON journal
WHEN OLD.seq > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'archived_to'), 0)
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TABLE snapshots (
    tick     INTEGER PRIMARY KEY,
    seq      INTEGER NOT NULL,          -- the last journal row that it contains
    checksum TEXT NOT NULL,
    body     BLOB NOT NULL
);

CREATE TABLE lease (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    epoch      INTEGER NOT NULL,
    holder     TEXT NOT NULL,           -- '' when nobody leads
    kind       TEXT NOT NULL,
    boot_id    TEXT NOT NULL,
    renewed_ms INTEGER NOT NULL         -- boot-time clock of that boot
);
INSERT INTO lease VALUES (1, 0, '', '', '', 0);

CREATE TABLE requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    wall_ms INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    BLOB NOT NULL,
    outcome TEXT                        -- NULL until a leader has answered: accepted, or refused: why
);

CREATE TABLE readings (                 -- the newest readings of each host, for followers; may be thrown away
    host    TEXT PRIMARY KEY,
    wall_ms INTEGER NOT NULL,
    body    BLOB NOT NULL               -- zlib
) WITHOUT ROWID;
