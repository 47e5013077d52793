//! To be filled: exec.
