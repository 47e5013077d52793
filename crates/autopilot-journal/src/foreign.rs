//! Figures from the database of another program, which is not trusted.

use camino::Utf8Path;
use rusqlite::{Connection, OpenFlags};

/// Reads one row of numbers from a table of another program's database. `sql` has one parameter,
/// `key`. Returns `None` if the file is no such database. The file is a copy: opening it may write to
/// it.
pub fn foreign_figures<const N: usize>(
    copy: &Utf8Path,
    table: &str,
    sql: &str,
    key: &str,
) -> Option<[f64; N]> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let conn = Connection::open_with_flags(copy, flags).ok()?;
    // Nothing in its schema may call functions, and a view could do so without an end.
    conn.pragma_update(None, "trusted_schema", "OFF").ok()?;
    let kind = "SELECT type FROM sqlite_master WHERE name = ?1";
    let kind: String = conn.query_row(kind, [table], |row| row.get(0)).ok()?;
    if kind != "table" {
        return None;
    }
    let figures = |row: &rusqlite::Row<'_>| {
        let mut figures = [0.0; N];
        for (place, figure) in figures.iter_mut().enumerate() {
            *figure = row.get::<_, Option<f64>>(place)?.unwrap_or(0.0);
        }
        Ok(figures)
    };
    conn.query_row(sql, [key], figures).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use camino::Utf8PathBuf;

    #[test]
    fn a_table_is_read_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("x.db")).unwrap();
        let read = |table| {
            foreign_figures::<2>(&path, table, "SELECT sum(a), sum(b) FROM t WHERE k = ?1", "x")
        };
        assert_eq!(read("t"), None, "there is no file");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(
            "CREATE TABLE t (k, a, b); INSERT INTO t VALUES ('x', 1, 0.5), ('x', 2, 0), ('y', 9, 9);
             CREATE VIEW v AS SELECT 1;",
        )
        .unwrap();
        assert_eq!(read("t"), Some([3.0, 0.5]));
        assert_eq!(read("v"), None);
        std::fs::write(&path, "no database").unwrap();
        assert_eq!(read("t"), None);
    }
}
