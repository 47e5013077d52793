//! A stage on which the real `claude` and `codex` play, against a scripted model, cut off from the
//! network.
#![allow(
    clippy::unwrap_used,
    reason = "test support: what can't be set up must fail the test at once"
)]

use crate::agents;
use crate::model::{Script, Server};
use crate::netns;
use crate::stage::Stage;

/// The builder is `claude`, planner and reviewer are `codex`.
pub struct Real {
    pub stage: Stage,
    pub server: Server,
}

impl Real {
    /// `config` is what the configuration says beside its agents.
    pub fn new(binary: &str, script: Script, config: &str) -> Real {
        netns::enter();
        let server = Server::start(script).unwrap();
        let mut stage = Stage::new(binary);
        let home = stage.folder().join("home");
        let claude = agents::claude_home(&home, &server).unwrap();
        let codex = agents::codex_home(&home, &server).unwrap();
        for (name, value) in claude.into_iter().chain(codex) {
            if name != "TMPDIR" {
                stage.set(&name, &value);
            }
        }
        let (claude, codex) = (agents::claude(), agents::codex());
        let (claude, codex) = (claude.display(), codex.display());
        stage.write(
            ".autopilot/config.yml",
            &format!(
                "repo: {{ base_branch: main }}\n\
                 builder: {{ mode: claude_code_cli, executable: {claude} }}\n\
                 reviewer: {{ mode: codex_cli, executable: {codex}, model: {model} }}\n\
                 planner: {{ mode: codex_cli, executable: {codex}, model: {model} }}\n{config}",
                model = agents::CODEX_MODEL,
            ),
        );
        Real { stage, server }
    }
}
