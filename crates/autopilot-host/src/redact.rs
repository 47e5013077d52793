//! To be filled: redact.
