//! The kind of a failed push, recognised by the words of git and the servers.

/// The kinds of failure that differ in what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushClass {
    /// Our identity or our rights are not accepted: a person must log in or grant access.
    Auth,
    /// The remote has commits we don't have: fetch, rebase, push again.
    NonFastForward,
    /// The server's rules forbid the push (protected branch, hook, signature, secret scanning).
    Policy,
    /// A file or the pack is too large.
    Size,
    /// The network or the server failed; the push may work later.
    Network,
    /// The words are not known.
    Unknown,
}

/// Phrases in the order they are looked for: a server's reason beats the generic lines around it.
/// Written in lower case; `hook declined` comes after the reasons hooks give.
const PHRASES: &[(&str, PushClass)] = &[
    ("exceeds github's file size limit", PushClass::Size),
    ("gh001: large files", PushClass::Size),
    ("exceeds the maximum allowed", PushClass::Size),
    ("pack exceeds maximum allowed size", PushClass::Size),
    ("file size exceeds", PushClass::Size),
    ("larger than the allowed size", PushClass::Size),
    ("exceeded its size limit", PushClass::Size),
    ("exceeds file size limit", PushClass::Size),
    ("http 413", PushClass::Size),
    ("error: 413", PushClass::Size),
    ("request entity too large", PushClass::Size),
    ("gh006: protected branch", PushClass::Policy),
    ("gh009: secrets detected", PushClass::Policy),
    ("gh013: repository rule violations", PushClass::Policy),
    ("gh007:", PushClass::Policy),
    ("protected branch hook declined", PushClass::Policy),
    ("push declined due to", PushClass::Policy),
    ("to a protected branch", PushClass::Policy),
    ("to protected branch", PushClass::Policy),
    ("branch is protected", PushClass::Policy),
    ("refusing to allow an oauth app", PushClass::Auth),
    ("refusing to allow a personal access token", PushClass::Auth),
    ("refusing to allow a github app", PushClass::Auth),
    ("refusing to allow an integration", PushClass::Auth),
    ("commit message does not follow", PushClass::Policy),
    ("must have verified signatures", PushClass::Policy),
    ("author is not a member of team", PushClass::Policy),
    ("is not verified", PushClass::Policy),
    ("authentication failed", PushClass::Auth),
    ("invalid username or password", PushClass::Auth),
    ("invalid username or token", PushClass::Auth),
    ("invalid credentials", PushClass::Auth),
    ("could not read username", PushClass::Auth),
    ("could not read password", PushClass::Auth),
    ("terminal prompts disabled", PushClass::Auth),
    ("password authentication was removed", PushClass::Auth),
    ("support for password authentication", PushClass::Auth),
    ("permission denied (publickey", PushClass::Auth),
    ("host key verification failed", PushClass::Auth),
    ("too many authentication failures", PushClass::Auth),
    ("saml sso", PushClass::Auth),
    ("access denied", PushClass::Auth),
    ("you are not allowed to push code to this project", PushClass::Auth),
    ("deploy key does not have write access", PushClass::Auth),
    ("key you are authenticating with has been marked as read only", PushClass::Auth),
    ("write access to repository not granted", PushClass::Auth),
    ("the requested url returned error: 401", PushClass::Auth),
    ("the requested url returned error: 403", PushClass::Auth),
    ("not authorized", PushClass::Auth),
    ("unauthorized", PushClass::Auth),
    ("permission to ", PushClass::Auth),
    ("repository not found", PushClass::Auth),
    ("project you were looking for could not be found", PushClass::Auth),
    ("could not resolve host", PushClass::Network),
    ("temporary failure in name resolution", PushClass::Network),
    ("name or service not known", PushClass::Network),
    ("connection timed out", PushClass::Network),
    ("operation timed out", PushClass::Network),
    ("connection refused", PushClass::Network),
    ("connection reset", PushClass::Network),
    ("connection closed by", PushClass::Network),
    ("failed to connect to", PushClass::Network),
    ("couldn't connect to server", PushClass::Network),
    ("network is unreachable", PushClass::Network),
    ("no route to host", PushClass::Network),
    ("broken pipe", PushClass::Network),
    ("the remote end hung up unexpectedly", PushClass::Network),
    ("early eof", PushClass::Network),
    ("gnutls_handshake", PushClass::Network),
    ("tls connection was non-properly terminated", PushClass::Network),
    ("ssl_error_syscall", PushClass::Network),
    ("rpc failed", PushClass::Network),
    ("internal server error", PushClass::Network),
    ("the requested url returned error: 429", PushClass::Network),
    ("the requested url returned error: 5", PushClass::Network),
    ("cannot lock ref", PushClass::Network),
    ("failed to update ref", PushClass::Network),
    ("(non-fast-forward)", PushClass::NonFastForward),
    ("(fetch first)", PushClass::NonFastForward),
    ("(stale info)", PushClass::NonFastForward),
    ("updates were rejected because", PushClass::NonFastForward),
    ("hook declined", PushClass::Policy),
    ("(deny updating a hidden ref)", PushClass::Policy),
    ("funny refname", PushClass::Policy),
    ("refusing to update checked out branch", PushClass::Policy),
    ("remote rejected", PushClass::Policy),
];

/// Returns the kind of failure. A phrase about the network that hides a server's answer is only
/// believed if nothing else was said.
pub fn classify(stderr: &str) -> PushClass {
    let text = stderr.to_lowercase();
    PHRASES
        .iter()
        .find(|(phrase, _)| text.contains(phrase))
        .map_or(PushClass::Unknown, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_answers_are_told_apart() {
        for (stderr, class) in ANSWERS {
            assert_eq!(classify(stderr), *class, "{stderr}");
        }
    }

    /// A phrase is never found if it contains an earlier one, and adds nothing if it contains a
    /// later one of its kind with no other kind between the two.
    #[test]
    fn every_phrase_decides_something() {
        for (at, (phrase, class)) in PHRASES.iter().enumerate() {
            assert_ne!(*class, PushClass::Unknown, "`{phrase}` names no kind");
            let earlier = PHRASES[..at].iter().find(|(other, _)| phrase.contains(other));
            assert_eq!(earlier, None, "`{phrase}` is never reached");
            let mut same = PHRASES[at + 1..].iter().take_while(|(_, other)| other == class);
            let later = same.find(|(other, _)| phrase.contains(other));
            assert_eq!(later, None, "`{phrase}` adds nothing");
        }
    }

    #[test]
    fn an_author_is_not_an_authentication() {
        assert_eq!(classify("remote: the author of this commit likes authors"), PushClass::Unknown);
        assert_eq!(classify("fatal: authority section empty"), PushClass::Unknown);
    }

    const ANSWERS: &[(&str, PushClass)] = &[
        // GitHub over https.
        (
            "remote: Support for password authentication was removed on August 13, 2021.\nfatal: Authentication failed for 'https://github.com/o/r.git/'",
            PushClass::Auth,
        ),
        (
            "remote: Invalid username or token. Password authentication is not supported for Git operations.\nfatal: Authentication failed for 'https://github.com/o/r.git/'",
            PushClass::Auth,
        ),
        (
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
            PushClass::Auth,
        ),
        (
            "remote: Permission to o/r.git denied to someone.\nfatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403",
            PushClass::Auth,
        ),
        (
            "remote: Repository not found.\nfatal: repository 'https://github.com/o/r.git/' not found",
            PushClass::Auth,
        ),
        (
            "remote: Write access to repository not granted.\nfatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 403",
            PushClass::Auth,
        ),
        (
            " ! [remote rejected] main -> main (refusing to allow an OAuth App to create or update workflow `.github/workflows/ci.yml` without `workflow` scope)",
            PushClass::Auth,
        ),
        (
            "ERROR: The `acme' organization has enabled or enforced SAML SSO. To access\nthis repository, you must re-authorize the OAuth Application",
            PushClass::Auth,
        ),
        // ssh.
        (
            "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.",
            PushClass::Auth,
        ),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.",
            PushClass::Auth,
        ),
        (
            "ERROR: The key you are authenticating with has been marked as read only.\nfatal: Could not read from remote repository.",
            PushClass::Auth,
        ),
        (
            "ssh: connect to host github.com port 22: Connection timed out\nfatal: Could not read from remote repository.",
            PushClass::Network,
        ),
        (
            "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\nfatal: Could not read from remote repository.",
            PushClass::Network,
        ),
        (
            "kex_exchange_identification: Connection closed by remote host\nfatal: Could not read from remote repository.",
            PushClass::Network,
        ),
        (
            "client_loop: send disconnect: Broken pipe\nfatal: the remote end hung up unexpectedly",
            PushClass::Network,
        ),
        // Network over https.
        (
            "fatal: unable to access 'https://github.com/o/r.git/': Could not resolve host: github.com",
            PushClass::Network,
        ),
        (
            "fatal: unable to access 'https://x/': Failed to connect to x port 443 after 3 ms: Couldn't connect to server",
            PushClass::Network,
        ),
        (
            "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly",
            PushClass::Network,
        ),
        (
            "fatal: unable to access 'https://x/': The requested URL returned error: 503",
            PushClass::Network,
        ),
        (
            "remote: Internal Server Error\n ! [remote rejected] a -> a (Internal Server Error)",
            PushClass::Network,
        ),
        (
            "fatal: unable to access 'https://x/': GnuTLS recv error (-110): The TLS connection was non-properly terminated.",
            PushClass::Network,
        ),
        // Not fast-forward.
        (
            " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'github.com:o/r.git'\nhint: Updates were rejected because the remote contains work that you do not have locally.",
            PushClass::NonFastForward,
        ),
        (
            " ! [rejected]        main -> main (non-fast-forward)\nerror: failed to push some refs to 'origin'\nhint: Updates were rejected because the tip of your current branch is behind",
            PushClass::NonFastForward,
        ),
        (" ! [rejected] a -> a (stale info)", PushClass::NonFastForward),
        // Protection and policy.
        (
            "remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: Changes must be made through a pull request.\n ! [remote rejected] main -> main (protected branch hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: error: GH013: Repository rule violations found for refs/heads/main.\nremote: - Cannot force-push to this branch\n ! [remote rejected] main -> main (push declined due to repository rule violations)",
            PushClass::Policy,
        ),
        ("remote: error: GH009: Secrets detected! This push failed.", PushClass::Policy),
        (
            "remote: error: GH007: Your push would publish a private email address.\n ! [remote rejected] main -> main (push declined due to email privacy restrictions)",
            PushClass::Policy,
        ),
        (
            "remote: GitLab: You are not allowed to push code to protected branches on this project.\n ! [remote rejected] main -> main (pre-receive hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: GitLab: You are not allowed to force push code to a protected branch on this project.",
            PushClass::Policy,
        ),
        (
            "remote: GitLab: Commit message does not follow the pattern '^JIRA'\n ! [remote rejected] a -> a (pre-receive hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: GitLab: Commit author's email 'a@b' does not follow the pattern\n ! [remote rejected] a -> a (pre-receive hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: GitLab: Author 'a@b' is not a member of team\n ! [remote rejected] a -> a (pre-receive hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: Gitea: Not allowed to push to protected branch main\n ! [remote rejected] main -> main (pre-receive hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: Forgejo: branch main is protected from force push\n ! [remote rejected] main -> main (pre-receive hook declined)",
            PushClass::Policy,
        ),
        (
            "remote: error: refusing to update checked out branch: refs/heads/main\n ! [remote rejected] main -> main (branch is currently checked out)",
            PushClass::Policy,
        ),
        // GitLab and Gitea access.
        (
            "remote: HTTP Basic: Access denied. If a password was provided for Git authentication, the password was incorrect\nfatal: Authentication failed for 'https://gitlab.com/o/r.git/'",
            PushClass::Auth,
        ),
        (
            "remote: You are not allowed to push code to this project.\nfatal: unable to access 'https://gitlab.com/o/r.git/': The requested URL returned error: 403",
            PushClass::Auth,
        ),
        (
            "remote: ERROR: This deploy key does not have write access to this project.\nfatal: Could not read from remote repository.",
            PushClass::Auth,
        ),
        (
            "remote: ERROR: The project you were looking for could not be found or you don't have permission to view it.",
            PushClass::Auth,
        ),
        ("Gitea: Unauthorized\nfatal: Could not read from remote repository.", PushClass::Auth),
        // Size.
        (
            "remote: error: GH001: Large files detected. You may want to try Git Large File Storage.\nremote: error: File big.bin is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB\n ! [remote rejected] main -> main (pre-receive hook declined)",
            PushClass::Size,
        ),
        (
            "error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413\nfatal: the remote end hung up unexpectedly",
            PushClass::Size,
        ),
        (
            "remote: fatal: pack exceeds maximum allowed size (2.00 GiB)\nerror: remote unpack failed: index-pack abnormal exit",
            PushClass::Size,
        ),
        (
            "remote: GitLab: File \"big.bin\" is larger than the allowed size of 10 MiB.\n ! [remote rejected] a -> a (pre-receive hook declined)",
            PushClass::Size,
        ),
        (
            "remote: warning: File a is 60.00 MB; this is larger than GitHub's recommended maximum file size of 50.00 MB",
            PushClass::Unknown,
        ),
        // Nothing known.
        ("error: src refspec main does not match any", PushClass::Unknown),
        ("", PushClass::Unknown),
    ];
}
