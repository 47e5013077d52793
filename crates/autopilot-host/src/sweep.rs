//! To be filled: sweep.
