//! The secrets that a run knows, and what is made of them: the redactor of everything shown, and the
//! border that nothing with their values crosses.

use crate::environment::{self, Variables};
use crate::leak;
use crate::place::StatePaths;
use crate::run_process::{RunProcessError, pinned};
use autopilot_core::config::Config;
use autopilot_core::guard::secret::{PASSWORD_IN, is_ignored};
use autopilot_core::guard::secret_value::is_compared;
use autopilot_core::key_shape::any_key;
use autopilot_core::state::State;
use autopilot_host::file;
use autopilot_host::git::{Border, UserRepo};
use autopilot_host::redact::{self, RedactError, Redactor};
use autopilot_host::secret::{NamedSecret, SecretFinder};
use autopilot_journal::JournalHistory;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

const COPIED_BYTES_MAX: u64 = 1 << 20;
const LOGIN_BYTES_MAX: u64 = 1 << 20;

/// The logins of agents: the variable that names their directory, where it is without one, and the
/// file in it.
const LOGINS: [(&str, &str, &str); 3] = [
    ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
    ("CODEX_HOME", ".codex", "auth.json"),
    ("XDG_DATA_HOME", ".local/share", "opencode/auth.json"),
];

/// The secrets that a run knows, each with where it comes from.
#[derive(Debug, Default)]
pub struct KnownSecrets(Vec<NamedSecret>);

impl KnownSecrets {
    /// The secrets in the environment: by their names, and passwords in URLs.
    pub fn of_environment(variables: &Variables) -> KnownSecrets {
        let mut known = KnownSecrets::default();
        for (name, value) in variables {
            known.add_of_url(name, value);
            if redact::is_secret_name(name) && value.len() >= redact::SECRET_BYTES_MIN {
                known.add(name, value);
            }
        }
        known
    }

    /// The secrets in the configuration, in the environment, and in files copied into worktrees.
    pub fn new(place: &StatePaths, config: &Config, variables: &Variables) -> KnownSecrets {
        let mut known = KnownSecrets::of_environment(variables);
        // A key is a secret whatever its variable is called.
        for name in environment::key_variables(config) {
            variables.get(name).into_iter().for_each(|value| known.add(name, value));
        }
        for (name, value) in environment::given(config, variables) {
            let name = if name.is_empty() { "mcp_servers" } else { &name };
            known.add_of_address(name, &value);
            if redact::is_secret_setting(name, &value) {
                known.add(name, &value);
            }
        }
        known.add_of_notices(config, variables);
        known.add_of_logins(variables);
        known.add_of_url("database", &config.database);
        for path in &config.worktrees.copy {
            let bytes = file::read_capped(place.root.join(path).as_std_path(), COPIED_BYTES_MAX);
            known.add_of_file(path, &String::from_utf8_lossy(&bytes.unwrap_or_default()));
        }
        let user = environment::user_home(variables).unwrap_or_default();
        for name in config.gates.home.iter().filter(|_| user.is_absolute()) {
            let bytes = file::read_capped(user.join(name).as_std_path(), COPIED_BYTES_MAX);
            known.add_of_settings(name, &String::from_utf8_lossy(&bytes.unwrap_or_default()));
        }
        known.0.retain(|secret| !is_ignored(&secret.name, &config.secrets.ignore));
        known
    }

    /// The same with the passwords in the addresses of the user's remotes.
    #[must_use]
    pub fn with_remotes(mut self, repo: &UserRepo) -> KnownSecrets {
        repo.remote_secrets.iter().for_each(|secret| self.add("a remote of git", secret));
        self
    }

    /// The redactor of everything that people see and of everything that is kept: it hides the
    /// secrets, the configured patterns, and whatever has the shape of a well-known key.
    pub fn redactor(&self, patterns: &[String]) -> Result<Redactor, RunProcessError> {
        Ok(self.redactor_for_agents(patterns)?.hiding_shapes(&any_key())?)
    }

    /// The redactor of prompts. It leaves in what only looks like a key: an agent reads the same
    /// text in its worktree, and can't work on example keys that it is not shown.
    pub fn redactor_for_agents(&self, patterns: &[String]) -> Result<Redactor, RedactError> {
        Redactor::new(patterns, self.0.iter().map(|secret| &secret.value))
    }

    /// The search for the values that must not leave the machine.
    pub fn finder(&self) -> Result<SecretFinder, RunProcessError> {
        let failed = |source| RedactError::Secrets { count: self.0.len(), source };
        let compared = self.0.iter().filter(|secret| is_compared(&secret.name, &secret.value));
        Ok(SecretFinder::new(compared).map_err(failed)?)
    }

    /// The border of the hub for work that began with a commit of this repository.
    pub fn border(&self, repo: &UserRepo) -> Result<Border, RunProcessError> {
        Ok(Border::new(self.finder()?, Some(repo.base_tip.clone()), leak::withheld))
    }

    fn add(&mut self, name: &str, value: &str) {
        self.0.push(NamedSecret::new(name, value));
    }

    fn add_of_url(&mut self, name: &str, value: &str) {
        let name = format!("{PASSWORD_IN}{name}");
        redact::secrets_of_url(value).iter().for_each(|secret| self.add(&name, secret));
    }

    /// Adds the password of an address, and the parts of its path and query that look like keys.
    fn add_of_address(&mut self, name: &str, value: &str) {
        self.add_of_url(name, value);
        redact::keys_of_url(value).iter().for_each(|secret| self.add(name, secret));
    }

    /// Adds what is used to notify a person: whoever has the webhook's address may write to it, and
    /// a command is given the whole environment.
    fn add_of_notices(&mut self, config: &Config, variables: &Variables) {
        if let Some(url) = &config.notify.webhook {
            self.add("notify.webhook", url);
            self.add_of_address("notify.webhook", url);
        }
        let Some(command) = &config.notify.command else { return };
        for word in command.split_whitespace().map(|word| word.trim_matches(['"', '\''])) {
            self.add_of_address("notify.command", word);
            if redact::is_secret_value("", word) {
                self.add("notify.command", word);
            }
        }
        for (name, value) in variables {
            self.add_of_address(name, value);
            if redact::is_secret_value(name, value) {
                self.add(name, value);
            }
        }
    }

    /// Adds the tokens of the logins that agents are given a copy of.
    fn add_of_logins(&mut self, variables: &Variables) {
        for (place, below_home, path) in LOGINS {
            let own = variables.get(place).map(Utf8PathBuf::from);
            let usual = variables.get("HOME").map(|home| Utf8Path::new(home).join(below_home));
            let Some(file) = own.or(usual).map(|dir| dir.join(path)) else { continue };
            let bytes = file::read_capped(file.as_std_path(), LOGIN_BYTES_MAX).unwrap_or_default();
            let login: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            self.add_of_login(&format!("the login in {file}"), &login);
        }
    }

    fn add_of_login(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if redact::is_secret_value("", text) => self.add(name, text),
            Value::Array(items) => items.iter().for_each(|item| self.add_of_login(name, item)),
            Value::Object(members) => {
                members.values().for_each(|member| self.add_of_login(name, member));
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds the secrets of a settings file of the user's home, such as `.npmrc`, `.netrc`,
    /// `.yarnrc.yml` or a TOML or JSON file: passwords in addresses, and what stands beside a name
    /// that is one of a secret. Other values are settings, the user's address in every commit among
    /// them.
    fn add_of_settings(&mut self, path: &str, text: &str) {
        const SEPARATORS: [char; 7] = [' ', '\t', '"', '\'', ',', '=', ';'];
        for line in text.lines() {
            let words: Vec<&str> =
                line.split(SEPARATORS).filter(|word| !["", ":"].contains(word)).collect();
            words.iter().for_each(|word| self.add_of_url(path, word));
            // `_authToken=x` in `.npmrc`, `password x` in `.netrc`, `npmAuthToken: x` in YAML.
            for pair in words.windows(2) {
                let name = pair[0].trim_end_matches(':').rsplit(['/', ':']).next().unwrap_or("");
                let is_path = pair[1].starts_with(['/', '.', '~']);
                let is_public = name.eq_ignore_ascii_case("signingkey");
                if redact::is_secret_name(name)
                    && pair[1].len() >= redact::SECRET_BYTES_MIN
                    && !is_path
                    && !is_public
                {
                    self.add(&format!("{name} in {path}"), pair[1]);
                }
            }
        }
    }

    /// Adds the secrets among the values of `NAME=value` lines, as in `.env`. Not every setting is a
    /// secret, and hiding a word such as `production` would hide unrelated text too.
    fn add_of_file(&mut self, path: &str, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let name = name.trim().trim_start_matches("export ").trim();
            let value = value.trim();
            let is_quoted = value.starts_with(['"', '\'']);
            let value = if is_quoted { value } else { value.split(" #").next().unwrap_or(value) };
            let value = value.trim().trim_matches(['"', '\'']);
            let told = format!("{name} in {path}");
            self.add_of_address(&told, value);
            if redact::is_secret_value(name, value) {
                self.add(&told, value);
            }
        }
    }
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
    let config = pinned(history, state)?;
    KnownSecrets::new(place, &config, variables).redactor(&config.logging.redact_patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(text: &str) -> Vec<String> {
        let mut known = KnownSecrets::default();
        known.add_of_file(".env", text);
        known.0.into_iter().map(|secret| secret.value).collect()
    }

    /// The names of what is known of a configuration and an environment, with the values.
    fn known(config: &str, variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let (config, _) = Config::parse(&format!("commands: {{ tests: t }}\n{config}")).unwrap();
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let place = StatePaths { root: "/none".into(), state: "/none".into() };
        let known = KnownSecrets::new(&place, &config, &variables.iter().map(pair).collect());
        known.0.into_iter().map(|secret| (secret.name, secret.value)).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn secrets_of_an_env_file_are_told_from_settings() {
        let text = "# comment\nA=short\nTOKEN=\"abcdef123\"\nexport PASS='longer value'\nno\n\
            DB_PASSWORD=hunter22 # of the test\nX=k3yWithoutAName0815\n\
            DATABASE_URL=postgres://app:pg-secret@localhost:5432/app\n\
            OTHER_URL=postgres://postgres:postgres@localhost/app\n";
        let found = ["abcdef123", "longer value", "hunter22", "k3yWithoutAName0815", "pg-secret"];
        assert_eq!(of_file(text), found);
        let text = "APP_MODE=APPROVE\nNODE_ENV=production\nHOST=localhost\nA_TOKEN=short\n\
            LOG_FILE=/var/log/app/2026.log\nURL=http://localhost:8080/v1/users\n\
            NAME=a name of many words\nMODEL=claude-sonnet-4-5-20250929\n\
            OPTIONS=--max-old-space-size=4096\nIMAGE=postgres-15-alpine\n";
        assert_eq!(of_file(text), [""; 0]);
    }

    #[test]
    fn a_webhook_is_a_secret_whole_and_in_part() {
        let url = "https://hooks.example.com/services/T0AB/x1y2z3a4b5c6d7e8f9";
        let found = known(&format!("notify: {{ webhook: '{url}' }}\n"), &[]);
        let part = ("notify.webhook", "x1y2z3a4b5c6d7e8f9");
        assert_eq!(found, pairs(&[("notify.webhook", url), part]));
    }

    #[test]
    fn values_given_to_agents_are_secrets_and_settings_are_not() {
        let config = "builder: { mode: script, script: a, env: { DEPLOY: zq7-Rv2x-canary, RUST_LOG: \
                      debug, MODEL: gpt-5-codex, PORT: '8080', NODE_OPTIONS: --max-old-space-size=4096, \
                      API_TOKEN: abcdef } }\n";
        let found = known(config, &[]);
        assert_eq!(found, pairs(&[("API_TOKEN", "abcdef"), ("DEPLOY", "zq7-Rv2x-canary")]));
    }

    #[test]
    fn what_a_person_says_is_no_secret_is_none() {
        let variables = [
            ("BUILD_KEY", "0a1b2c3d4e5f60718293"),
            ("DATABASE_URL", "postgres://app:pg-pass-77@db/app"),
            ("GITHUB_TOKEN", "t0k3nOfTheForge"),
        ];
        let found = known("secrets: { ignore: [BUILD_KEY, DATABASE_URL] }\n", &variables);
        assert_eq!(found, pairs(&[("GITHUB_TOKEN", "t0k3nOfTheForge")]));
    }

    #[test]
    fn the_tokens_of_an_agents_login_are_known() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".codex");
        std::fs::create_dir(&dir).unwrap();
        let login = r#"{"tokens":{"access_token":"t0k3n-0f-th3-l0g1n-99"},"mode":"chatgpt"}"#;
        std::fs::write(dir.join("auth.json"), login).unwrap();
        let found = known("", &[("HOME", home.path().to_str().unwrap())]);
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["t0k3n-0f-th3-l0g1n-99"]);
    }

    #[test]
    fn the_environment_of_a_command_that_notifies_is_known_and_otherwise_only_named_secrets() {
        let variables = [
            ("GITHUB_TOKEN", "t0k3nOfTheForge"),
            ("DATABASE_URL", "postgres://app:pg-pass-77@db/app"),
            ("PLAIN_CHANNEL", "c4nn3lWithoutAName99"),
            ("LANG", "en_US.UTF-8"),
        ];
        let password = ("the password in DATABASE_URL", "pg-pass-77");
        let token = ("GITHUB_TOKEN", "t0k3nOfTheForge");
        assert_eq!(known("", &variables), pairs(&[password, token]));
        let found = known("notify: { command: 'sh notify.sh' }\n", &variables);
        assert!(found.contains(&("PLAIN_CHANNEL".into(), "c4nn3lWithoutAName99".into())));
        assert!(!found.iter().any(|(name, _)| name == "LANG"), "{found:?}");
    }

    #[test]
    fn secrets_of_the_files_that_gates_get_are_found_in_their_own_forms() {
        let of_settings = |text: &str| {
            let mut known = KnownSecrets::default();
            known.add_of_settings(".npmrc", text);
            known.0.into_iter().map(|secret| secret.value).collect::<Vec<_>>()
        };
        let files = [
            ("//registry.example/:_authToken=npm_0123456789\nsave-exact=true\n", "npm_0123456789"),
            ("npmAuthToken: yarn-secret-1\nnodeLinker: node-modules\n", "yarn-secret-1"),
            ("machine h login me password hunter22\n", "hunter22"),
            ("[registries.x]\ntoken = \"Bearer-1234567\"\n", "Bearer-1234567"),
            ("{ \"auths\": { \"h\": { \"auth\": \"dTpwYXNzd29yZA\" } } }", "dTpwYXNzd29yZA"),
            ("[url \"https://me:ghp_aaaa1111@h/\"]\n  insteadOf = https://h/\n", "ghp_aaaa1111"),
        ];
        for (text, secret) in files {
            assert!(of_settings(text).iter().any(|found| found == secret), "{text}");
        }
        let plain = "[user]\n  name = Ada Lovelace\n  email = 12345+ada-lovelace@users.example.com\n\
            signingkey = 0123456789ABCDEF\n[core]\n  sshCommand = ssh -i ~/.ssh/id_ed25519\n\
            registry=https://packages.example/npm/abcdef0123456789/\n";
        assert_eq!(of_settings(plain), [""; 0]);
    }
}
