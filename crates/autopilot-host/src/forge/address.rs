//! The address of a remote's repository, and the kind of forge at that address.

use crate::escape;

/// The kinds of forge that are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeKind {
    /// GitHub, on its own hosts or as an enterprise server.
    Github,
    /// GitLab, on its own host or elsewhere.
    Gitlab,
    /// Gitea, and Forgejo, which has the same API.
    Gitea,
}

impl ForgeKind {
    /// Returns the kind for a word of the user.
    pub fn named(word: &str) -> Option<ForgeKind> {
        match word.to_ascii_lowercase().as_str() {
            "github" => Some(ForgeKind::Github),
            "gitlab" => Some(ForgeKind::Gitlab),
            "gitea" | "forgejo" => Some(ForgeKind::Gitea),
            _ => None,
        }
    }

    /// Returns the kind by the host's name: the public forges, and hosts that have the kind in
    /// their name.
    pub fn of_host(host: &str) -> Option<ForgeKind> {
        let name = host.split(':').next().unwrap_or_default();
        let has = |word: &str| name.split('.').any(|label| label == word);
        if name == "github.com" || name.ends_with(".ghe.com") || has("github") {
            Some(ForgeKind::Github)
        } else if has("gitlab") {
            Some(ForgeKind::Gitlab)
        } else if name == "codeberg.org" || has("gitea") || has("forgejo") {
            Some(ForgeKind::Gitea)
        } else {
            None
        }
    }

    /// Returns the word for the kind, which [`ForgeKind::named`] reads.
    pub fn word(self) -> &'static str {
        match self {
            ForgeKind::Github => "github",
            ForgeKind::Gitlab => "gitlab",
            ForgeKind::Gitea => "gitea",
        }
    }

    /// Returns the base address of the API on this host.
    pub fn api(self, host: &str) -> String {
        match self {
            ForgeKind::Github if host == "github.com" => "https://api.github.com".to_owned(),
            ForgeKind::Github if host.ends_with(".ghe.com") => format!("https://api.{host}"),
            ForgeKind::Github => format!("https://{host}/api/v3"),
            ForgeKind::Gitlab => format!("https://{host}/api/v4"),
            ForgeKind::Gitea => format!("https://{host}/api/v1"),
        }
    }

    /// Returns the variables that may hold a token for this host; the first that is set counts.
    /// GitHub's own token is for GitHub's own hosts: another host with a similar name must not get
    /// it.
    pub fn token_variables(self, host: &str) -> &'static [&'static str] {
        match self {
            ForgeKind::Github if host == "github.com" || host.ends_with(".ghe.com") => {
                &["GH_TOKEN", "GITHUB_TOKEN"]
            }
            ForgeKind::Github => &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"],
            ForgeKind::Gitlab => &["GITLAB_TOKEN"],
            ForgeKind::Gitea => &["GITEA_TOKEN"],
        }
    }

    /// Returns the page on which a person opens a pull request.
    pub fn page(self, address: &ForgeAddress, base: &str, head: &str) -> String {
        let ForgeAddress { host, path, .. } = address;
        let (path, base, head) = (encoded_path(path), encoded_path(base), encoded_path(head));
        match self {
            ForgeKind::Github | ForgeKind::Gitea => {
                format!("https://{host}/{path}/compare/{base}...{head}")
            }
            ForgeKind::Gitlab => format!(
                "https://{host}/{path}/-/merge_requests/new?merge_request%5Bsource_branch%5D=\
                 {head}&merge_request%5Btarget_branch%5D={base}"
            ),
        }
    }
}

/// A repository on a host, without user, password and protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeAddress {
    /// The host in small letters, with the port if it is a port of HTTP.
    pub host: String,
    /// `owner/name`, on GitLab perhaps with groups between.
    pub path: String,
    /// Whether the remote is reached by ssh, so that the host may be an alias of the user's ssh
    /// configuration, which HTTP does not know.
    pub by_ssh: bool,
}

/// Other names by which the public forges can be reached by ssh.
const SSH_NAMES: [(&str, &str); 2] =
    [("ssh.github.com", "github.com"), ("altssh.gitlab.com", "gitlab.com")];

impl ForgeAddress {
    /// Reads the URL of a remote; `None` for a path on this machine and for anything else that does
    /// not name a repository on a host.
    pub fn parse(url: &str) -> Option<ForgeAddress> {
        let url = url.trim();
        match url.split_once("://") {
            Some((scheme, rest)) => {
                let by_ssh = match scheme.to_ascii_lowercase().as_str() {
                    "https" | "http" => false,
                    "ssh" | "git" | "git+ssh" | "ssh+git" => true,
                    _ => return None,
                };
                let rest = rest.split(['?', '#']).next()?;
                let (authority, path) = rest.split_once('/')?;
                ForgeAddress::of(authority, path, by_ssh)
            }
            None => {
                let (authority, path) = url.split_once(':')?;
                // `./a:b` is a path and `C:\a` a drive.
                let is_path = authority.contains('/') || authority.len() < 2;
                (!is_path).then(|| ForgeAddress::of(authority, path, true))?
            }
        }
    }

    fn of(authority: &str, path: &str, by_ssh: bool) -> Option<ForgeAddress> {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let mut host = host.to_ascii_lowercase();
        if by_ssh && !host.starts_with('[') {
            host = host.split(':').next()?.to_owned();
        }
        let host = host.trim_end_matches(":443").to_owned();
        let known = SSH_NAMES.iter().find(|(name, _)| *name == host);
        let host = known.map_or(host, |(_, meant)| (*meant).to_owned());
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        let is_plain = |part: &&str| {
            !part.is_empty() && !part.starts_with('.') && !part.contains(char::is_control)
        };
        let is_good = is_host(&host) && parts.len() >= 2 && parts.iter().all(is_plain);
        is_good.then(|| ForgeAddress { host, path: path.to_owned(), by_ssh })
    }

    /// Returns the first part of the path.
    pub fn owner(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }
}

pub(super) fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    !host.is_empty() && !host.starts_with(['-', '.', ':']) && host.bytes().all(plain)
}

/// Percent-encodes one part of a path or a value of a query.
pub(super) fn encoded(text: &str) -> String {
    escape::percent(text.as_bytes(), b"0123456789ABCDEF")
}

/// Percent-encodes a path and keeps its slashes.
pub(super) fn encoded_path(path: &str) -> String {
    path.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(url: &str) -> String {
        match ForgeAddress::parse(url) {
            None => "nothing".to_owned(),
            Some(ForgeAddress { host, path, by_ssh }) => {
                let kind = ForgeKind::of_host(&host).map_or("unknown", ForgeKind::word);
                format!("{host} {path} {}{kind}", if by_ssh { "ssh " } else { "" })
            }
        }
    }

    #[test]
    fn every_form_of_a_remote_is_understood() {
        let cases = [
            ("https://github.com/ada/engine.git", "github.com ada/engine github"),
            ("https://github.com/ada/engine/", "github.com ada/engine github"),
            ("https://ada:s3cret@GitHub.com/ada/engine", "github.com ada/engine github"),
            ("https://x-access-token:t@github.com:443/a/b.git", "github.com a/b github"),
            ("git@github.com:ada/engine.git", "github.com ada/engine ssh github"),
            ("github.com:ada/engine", "github.com ada/engine ssh github"),
            ("git@github.com:/ada/engine.git", "github.com ada/engine ssh github"),
            ("ssh://git@github.com/ada/engine.git", "github.com ada/engine ssh github"),
            ("ssh://git@ssh.github.com:443/ada/engine.git", "github.com ada/engine ssh github"),
            ("git+ssh://git@github.com:22/ada/engine", "github.com ada/engine ssh github"),
            ("https://acme.ghe.com/a/b", "acme.ghe.com a/b github"),
            ("https://github.acme.org/a/b", "github.acme.org a/b github"),
            ("https://gitlab.com/g/sub/sub2/p.git", "gitlab.com g/sub/sub2/p gitlab"),
            ("ssh://git@altssh.gitlab.com:443/g/p.git", "gitlab.com g/p ssh gitlab"),
            ("https://gitlab.acme.org:8443/g/p", "gitlab.acme.org:8443 g/p gitlab"),
            ("ssh://git@gitlab.acme.org:2222/g/p", "gitlab.acme.org g/p ssh gitlab"),
            ("https://codeberg.org/a/b", "codeberg.org a/b gitea"),
            ("http://gitea.local:3000/a/b.git", "gitea.local:3000 a/b gitea"),
            ("https://git.acme.org/a/b", "git.acme.org a/b unknown"),
            // This host only has a similar name and must not be taken for the real one.
            ("https://notgithub.com/a/b", "notgithub.com a/b unknown"),
            ("git@work:a/b.git", "work a/b ssh unknown"),
            ("/srv/git/remote.git", "nothing"),
            ("../remote.git", "nothing"),
            ("./a:b/c", "nothing"),
            ("file:///srv/git/remote.git", "nothing"),
            ("C:\\git\\remote.git", "nothing"),
            ("https://github.com/ada", "nothing"),
            ("https://github.com/../b", "nothing"),
            ("git@-oProxyCommand=x:a/b", "nothing"),
            ("", "nothing"),
        ];
        for (url, wanted) in cases {
            assert_eq!(told(url), wanted, "{url}");
        }
    }

    #[test]
    fn the_api_is_where_each_forge_has_it() {
        let api = |kind: ForgeKind, host: &str| kind.api(host);
        assert_eq!(api(ForgeKind::Github, "github.com"), "https://api.github.com");
        assert_eq!(api(ForgeKind::Github, "acme.ghe.com"), "https://api.acme.ghe.com");
        assert_eq!(api(ForgeKind::Github, "git.acme.org"), "https://git.acme.org/api/v3");
        assert_eq!(api(ForgeKind::Gitlab, "gitlab.com"), "https://gitlab.com/api/v4");
        assert_eq!(api(ForgeKind::Gitea, "codeberg.org"), "https://codeberg.org/api/v1");
    }

    #[test]
    fn the_token_of_github_is_for_githubs_own_hosts() {
        assert_eq!(ForgeKind::Github.token_variables("github.com"), ["GH_TOKEN", "GITHUB_TOKEN"]);
        assert!(!ForgeKind::Github.token_variables("github.evil.org").contains(&"GH_TOKEN"));
    }

    #[test]
    fn what_stands_in_an_address_is_encoded() {
        assert_eq!(encoded("a/b c&d=ü"), "a%2Fb%20c%26d%3D%C3%BC");
        assert_eq!(encoded_path("autopilot/run 1"), "autopilot/run%201");
    }
}
