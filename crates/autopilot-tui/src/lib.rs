//! The live dashboard: what a run looks like on a terminal while it is under way.
