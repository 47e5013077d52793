//! To be filled: file.
