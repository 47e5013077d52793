//! To be filled: proc.
