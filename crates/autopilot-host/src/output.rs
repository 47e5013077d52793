//! To be filled: output.
