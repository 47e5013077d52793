//! Tests that need the inside of the journal.
