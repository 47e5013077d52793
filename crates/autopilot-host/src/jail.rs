//! The jail in which agents and commands run.

mod plan;

pub use plan::{JailMount, JailNetwork, JailPlan, NamespaceProbe};
