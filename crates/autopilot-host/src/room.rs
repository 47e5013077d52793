//! To be filled: room.
