//! The proof of the loop: a simulated world around the real core and the real loop, the rules that
//! must hold after every input, and scenarios that read as the specification does.
//!
//! Read in this order: [`world`] for what happens, [`audit`] for what must hold, [`swarm`] for what
//! a seed draws, [`scenario`] for the same world driven by a text.
//!
//! For tests with the real agents: [`agents`] finds them, [`model`] is what they talk to, [`netns`]
//! keeps them from talking to anybody else, [`real`] puts all of it on a [`stage`].

pub mod agent;
pub mod agents;
pub mod audit;
pub mod fault;
pub mod faulty_git;
pub mod goal;
pub mod model;
pub mod netns;
pub mod plan;
pub mod random;
pub mod real;
pub mod scenario;
pub mod small_disk;
pub mod stage;
pub mod swarm;
pub mod world;
