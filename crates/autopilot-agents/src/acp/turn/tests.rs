//! Turns, line by line.
