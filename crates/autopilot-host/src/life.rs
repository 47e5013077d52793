//! To be filled: life.
