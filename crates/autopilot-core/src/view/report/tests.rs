//! The page of a run, from small states made by hand.
