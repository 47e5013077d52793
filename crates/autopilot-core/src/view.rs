//! Views folded from the state.
