//! To be filled: lock.
