//! Notifies the user that a run has ended or needs them.

use super::ground;
use crate::terminal;
use autopilot_core::config::Notify;
use autopilot_core::state::State;
use autopilot_engine::cause::chain;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::status::RunStatus;
use autopilot_host::notify::{self, NotifyError, NotifyMessage, NotifyWay};
use autopilot_view::{ExitWord, run_word};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Sends the notifications. A failure is only printed and never fails the run.
pub fn tell(config: &Notify, place: &StatePaths, state: &State, word: ExitWord, told: &RunStatus) {
    if config.bell {
        terminal::bell();
    }
    let ways = ways(config);
    if ways.is_empty() {
        return;
    }
    let message = message(state, word, told);
    let (known, patterns) = ground::secrets(place);
    let Ok(redactor) = known.redactor(&patterns) else {
        return terminal::note("cannot notify: the redaction patterns can't be used");
    };
    let env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let from = notify::NotifyPlace::new(place.root.clone().into_std_path_buf(), env);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return terminal::note("cannot notify: no runtime");
    };
    for way in ways {
        match runtime.block_on(notify::notify(&way, &message, &from)) {
            // Desktop notifications are on by default, also where there is no desktop.
            Ok(()) => {}
            Err(NotifyError::NoProgram { .. }) if way == NotifyWay::Desktop => {}
            // A command has the whole environment, and an address may be all it takes to use it.
            Err(error) => terminal::note(&redactor.redact(&chain(&error))),
        }
    }
}

fn ways(config: &Notify) -> Vec<NotifyWay> {
    let mut ways = Vec::new();
    if config.desktop {
        ways.push(NotifyWay::Desktop);
    }
    if let Some(command) = &config.command {
        let words = autopilot_agents::words::split(command).unwrap_or_default();
        ways.push(NotifyWay::Command(words.into_iter().map(OsString::from).collect()));
    }
    ways.extend(config.webhook.clone().map(NotifyWay::Webhook));
    ways
}

fn message(state: &State, word: ExitWord, told: &RunStatus) -> NotifyMessage {
    // This title is redacted; the state's own is not.
    let title = told.title();
    let text = match word {
        ExitWord::Done => format!("{title} is done on {}", state.run.branch),
        ExitWord::Paused => format!("{title} is paused and waits for you"),
        ExitWord::Failed
        | ExitWord::NotConverged
        | ExitWord::PushFailed
        | ExitWord::Misconfigured => format!("{title} needs you"),
    };
    let json = serde_json::to_string(told).unwrap_or_default();
    NotifyMessage { title: format!("autopilot: {}", run_word(state)), text, json }
}
