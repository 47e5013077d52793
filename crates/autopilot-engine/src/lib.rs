//! The engine: the loop around the pure core, and the code that does what it wants done.

pub mod pilot;
