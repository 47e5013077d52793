//! The choice of a forge for a remote, and of the way to it: `gh` where it is logged in, else the
//! REST API with a token from the environment.
//!
//! `AUTOPILOT_FORGE` names the kind of forge at a host whose name does not tell;
//! `AUTOPILOT_FORGE_API` gives the base address of its API, which is then used instead of `gh`.

use super::address::{ForgeAddress, ForgeKind, is_host};
use super::gh::Gh;
use super::http::{Http, Token};
use super::rest::RestForge;
use super::{Forge, ForgeError, SettingError};
use crate::git::command::{GitCommand, find_program};
use crate::web;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use ureq::http::HeaderValue;

/// The variable that names the kind of forge.
pub const FORGE: &str = "AUTOPILOT_FORGE";
/// The variable with the base address of the forge's API.
pub const FORGE_API: &str = "AUTOPILOT_FORGE_API";

/// The longest time for one request, however much time there is for all.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Every variable that may hold a token of GitHub, for an API that was named on purpose.
const GITHUB_TOKENS: &[&str] =
    &["GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"];

/// The remote for which a forge is wanted.
pub struct ForgeRequest<'a> {
    /// The user's repository.
    pub dir: &'a Path,
    /// The name of the remote.
    pub remote: &'a str,
    /// The environment, which has tokens and settings.
    pub variables: &'a BTreeMap<String, String>,
    /// The longest time a request may take.
    pub timeout: Duration,
    /// A question asked many times a second; true ends a wait early.
    pub unwanted: &'a dyn Fn() -> bool,
}

/// A repository at its forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The kind of forge.
    pub kind: ForgeKind,
    /// The address of the repository.
    pub address: ForgeAddress,
}

impl Site {
    /// Returns the page on which a person opens the pull request.
    pub fn page(&self, base: &str, head: &str) -> String {
        self.kind.page(&self.address, base, head)
    }
}

/// A forge that is ready to be asked.
pub struct ChosenForge<'a> {
    /// The repository at the forge.
    pub site: Site,
    /// The way to the forge: `gh`, or the API's address.
    pub by: String,
    /// The client.
    pub forge: Box<dyn Forge + 'a>,
}

impl Site {
    /// Finds the repository and the kind of forge of a remote, without asking the network.
    pub fn of(asked: &ForgeRequest<'_>) -> Result<Site, ForgeError> {
        let address = address_of(asked)?;
        let kind = match setting(asked, FORGE) {
            Some(word) => ForgeKind::named(word).ok_or_else(|| ForgeError::Setting {
                name: FORGE,
                source: SettingError::Kind { word: word.to_owned() },
            })?,
            None => ForgeKind::of_host(&address.host)
                .ok_or_else(|| ForgeError::UnknownForge { host: address.host.clone() })?,
        };
        Ok(Site { kind, address })
    }
}

/// Chooses the way to the forge. Nothing is sent, except that `gh`, where it is installed, checks
/// its login.
pub fn choose<'a>(asked: &ForgeRequest<'a>) -> Result<ChosenForge<'a>, ForgeError> {
    let site = Site::of(asked)?;
    let Site { kind, address } = site.clone();
    let timeout = asked.timeout.min(REQUEST_TIMEOUT);
    let named = api_named(asked)?;
    let path = setting(asked, "PATH").unwrap_or_default();
    if kind == ForgeKind::Github
        && named.is_none()
        && let Some(gh) = Gh::logged_in(path, asked.dir, &address, timeout, asked.unwanted)
    {
        return Ok(ChosenForge { site, by: "gh".to_owned(), forge: Box::new(gh) });
    }
    let variables = match (kind, &named) {
        (ForgeKind::Github, Some(_)) => GITHUB_TOKENS,
        (ForgeKind::Github | ForgeKind::Gitlab | ForgeKind::Gitea, _) => {
            kind.token_variables(&address.host)
        }
    };
    let token = token(asked, kind, &address.host, variables)?;
    let whom = named.clone().unwrap_or_else(|| address.host.clone());
    let api = named.unwrap_or_else(|| kind.api(&address.host));
    let client =
        web::client(&api, setting(asked, web::CERTIFICATES_VARIABLE)).map_err(|error| {
            ForgeError::Setting { name: web::CERTIFICATES_VARIABLE, source: error.into() }
        })?;
    let agent = client.timeout_global(Some(timeout)).build().new_agent();
    let unwanted = asked.unwanted;
    let http = Http { agent, kind, api: api.clone(), whom, token, unwanted };
    Ok(ChosenForge { site, by: api, forge: Box::new(RestForge { http, address }) })
}

fn setting<'a>(asked: &ForgeRequest<'a>, name: &str) -> Option<&'a str> {
    asked.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

fn api_named(asked: &ForgeRequest<'_>) -> Result<Option<String>, ForgeError> {
    let Some(api) = setting(asked, FORGE_API) else { return Ok(None) };
    let failed = |source| ForgeError::Setting { name: FORGE_API, source };
    let rest = api.strip_prefix("https://").or_else(|| api.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| failed(SettingError::Protocol))?;
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return Err(failed(SettingError::Credentials));
    }
    if !is_host(host) || api.contains(['?', '#']) || !api.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(failed(SettingError::Address));
    }
    Ok(Some(api.trim_end_matches('/').to_owned()))
}

fn token(
    asked: &ForgeRequest<'_>,
    kind: ForgeKind,
    host: &str,
    variables: &'static [&'static str],
) -> Result<Token, ForgeError> {
    let found = variables.iter().find_map(|name| Some((*name, setting(asked, name)?)));
    let Some((variable, token)) = found else {
        return Err(ForgeError::NoToken { host: host.to_owned(), kind, variables });
    };
    let (header, text) = match kind {
        ForgeKind::Github => ("Authorization", format!("Bearer {token}")),
        ForgeKind::Gitlab => ("PRIVATE-TOKEN", token.to_owned()),
        ForgeKind::Gitea => ("Authorization", format!("token {token}")),
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| ForgeError::Setting { name: variable, source: SettingError::Token })?;
    value.set_sensitive(true);
    Ok(Token { header, value, variable })
}

/// Returns the address the remote is pushed to or, if that is a path on this machine, the address
/// it is fetched from.
fn address_of(asked: &ForgeRequest<'_>) -> Result<ForgeAddress, ForgeError> {
    let pushed = url(asked, &["--push"])?;
    let address = match ForgeAddress::parse(&pushed) {
        Some(address) => Some(address),
        None => ForgeAddress::parse(&url(asked, &[])?),
    };
    let Some(mut address) = address else {
        let url = crate::redact::without_secrets(&pushed);
        return Err(ForgeError::NoForge { remote: asked.remote.to_owned(), url });
    };
    if address.by_ssh
        && ForgeKind::of_host(&address.host).is_none()
        && let Some(meant) = meant_by_ssh(asked.dir, &address.host)
    {
        address.host = meant;
    }
    Ok(address)
}

/// Returns the remote's URL as git itself would use it, with the user's `insteadOf`.
fn url(asked: &ForgeRequest<'_>, flags: &[&str]) -> Result<String, ForgeError> {
    GitCommand::as_user(format!("read the address of `{}`", asked.remote), asked.dir)
        .args(["remote", "get-url"])
        .args(flags.iter().copied())
        .args(["--end-of-options", asked.remote])
        .line()
        .map_err(|source| ForgeError::Remote { remote: asked.remote.to_owned(), source })
}

/// Returns the host behind an alias of the user's ssh configuration.
fn meant_by_ssh(dir: &Path, host: &str) -> Option<String> {
    let out = GitCommand::program_as_user("read the ssh configuration", &find_program("ssh")?, dir)
        .args(["-G", "--", host])
        .run()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let meant = text.lines().find_map(|line| line.strip_prefix("hostname "))?.trim();
    let meant = ForgeAddress::parse(&format!("{meant}:a/b"))?;
    Some(meant.host)
}
