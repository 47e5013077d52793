//! To be filled: notify.
