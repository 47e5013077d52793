//! To be filled: escape.
