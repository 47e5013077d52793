//! To be filled: sandbox.
