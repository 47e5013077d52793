//! Builds the redactor of a run from its configuration and every known secret.

use crate::environment::{self, Variables};
use crate::place::StatePaths;
use crate::run_process::{RunProcessError, pinned};
use autopilot_core::config::Config;
use autopilot_core::state::State;
use autopilot_host::file;
use autopilot_host::redact::{self, Redactor};
use autopilot_journal::JournalHistory;

const COPIED_BYTES_MAX: u64 = 1 << 20;

/// The redactor for a configuration. It hides the configured patterns and every known secret: those
/// in the environment, in files copied into worktrees, and in `known`.
pub fn redactor(
    place: &StatePaths,
    config: &Config,
    variables: &Variables,
    known: &[String],
) -> Result<Redactor, RunProcessError> {
    let mut secrets: Vec<String> = redact::secrets_of(variables.clone());
    secrets.extend(variables.values().flat_map(|value| redact::secrets_of_url(value)));
    secrets.extend(known.iter().cloned());
    // A key is a secret whatever its variable is called.
    secrets
        .extend(environment::key_variables(config).filter_map(|key| variables.get(key).cloned()));
    for (name, value) in environment::given(config, variables) {
        secrets.extend(redact::secrets_of_url(&value));
        if redact::is_secret_value(&name, &value) {
            secrets.push(value);
        }
    }
    for path in &config.worktrees.copy {
        let bytes = file::read_capped(place.root.join(path).as_std_path(), COPIED_BYTES_MAX);
        secrets.extend(assigned_values(&String::from_utf8_lossy(&bytes.unwrap_or_default())));
    }
    if let Some(user) = environment::user_home(variables) {
        for name in &config.gates.home {
            let bytes = file::read_capped(user.join(name).as_std_path(), COPIED_BYTES_MAX);
            secrets.extend(listed_values(&String::from_utf8_lossy(&bytes.unwrap_or_default())));
        }
    }
    Ok(Redactor::new(&config.logging.redact_patterns, &secrets)?)
}

/// The redactor of an existing run, with the configuration it started with.
pub fn redactor_of(
    place: &StatePaths,
    history: &dyn JournalHistory,
    state: &State,
    variables: &Variables,
) -> Result<Redactor, RunProcessError> {
    if !state.has_begun() {
        return Ok(Redactor::none());
    }
    redactor(place, &pinned(history, state)?, variables, &[])
}

/// The secrets of a settings file of the user's home, such as `.npmrc`, `.netrc`, `.yarnrc.yml` or a
/// TOML or JSON file.
fn listed_values(text: &str) -> Vec<String> {
    let mut secrets = assigned_values(text);
    for line in text.lines() {
        let words: Vec<&str> = line.split([' ', '\t', '"', '\'', ',']).collect();
        secrets.extend(words.iter().flat_map(|word| redact::secrets_of_url(word)));
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let name = pair[0].trim_matches([':', '=']);
            // `password hunter22` in `.netrc`, `npmAuthToken: x` in YAML, `"auth": "x"` in JSON.
            let value = if pair[1] == ":" || pair[1] == "=" { "" } else { pair[1] };
            if redact::is_secret_name(name) && redact::is_secret_value(name, value) {
                secrets.push(value.to_owned());
            }
        }
    }
    secrets
}

/// The secrets among the values of `NAME=value` lines, as in `.env`. Not every setting is a secret,
/// and hiding a word such as `production` would hide unrelated text too.
fn assigned_values(text: &str) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let name = name.trim().trim_start_matches("export ").trim();
        let value = value.trim();
        let is_quoted = value.starts_with(['"', '\'']);
        let value = if is_quoted { value } else { value.split(" #").next().unwrap_or(value) };
        let value = value.trim().trim_matches(['"', '\'']);
        secrets.extend(redact::secrets_of_url(value));
        if redact::is_secret_value(name, value) {
            secrets.push(value.to_owned());
        }
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_an_env_file_are_told_from_settings() {
        let text = "# comment\nA=short\nTOKEN=\"abcdef123\"\nexport PASS='longer value'\nno\n\
            DB_PASSWORD=hunter22 # of the test\nX=k3yWithoutAName0815\n\
            DATABASE_URL=postgres://app:pg-secret@localhost:5432/app\n\
            OTHER_URL=postgres://postgres:postgres@localhost/app\n";
        let found = ["abcdef123", "longer value", "hunter22", "k3yWithoutAName0815", "pg-secret"];
        assert_eq!(assigned_values(text), found);
        let text = "APP_MODE=APPROVE\nNODE_ENV=production\nHOST=localhost\nA_TOKEN=short\n\
            LOG_FILE=/var/log/app/2026.log\nURL=http://localhost:8080/v1/users\n\
            NAME=a name of many words\n";
        assert_eq!(assigned_values(text), [""; 0]);
    }

    #[test]
    fn secrets_of_the_files_that_gates_get_are_found_in_their_own_forms() {
        let files = [
            ("//registry.example/:_authToken=npm_0123456789\nsave-exact=true\n", "npm_0123456789"),
            ("npmAuthToken: yarn-secret-1\nnodeLinker: node-modules\n", "yarn-secret-1"),
            ("machine h login me password hunter22\n", "hunter22"),
            ("[registries.x]\ntoken = \"Bearer-1234567\"\n", "Bearer-1234567"),
            ("{ \"auths\": { \"h\": { \"auth\": \"dTpwYXNzd29yZA\" } } }", "dTpwYXNzd29yZA"),
            ("[url \"https://me:ghp_aaaa1111@h/\"]\n  insteadOf = https://h/\n", "ghp_aaaa1111"),
        ];
        for (text, secret) in files {
            assert!(listed_values(text).iter().any(|found| found == secret), "{text}");
        }
        let plain = "[user]\n  name = Ada\n  email = ada@example.com\n[core]\n  editor = vim\n";
        assert_eq!(listed_values(plain), [""; 0]);
    }
}
