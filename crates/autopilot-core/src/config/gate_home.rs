//! The files of the user's home that a gate's own home has, unless the configuration lists others.

use super::Gates;

impl Gates {
    /// The settings of package managers, version managers and git. None of them is made to hold a
    /// login but `.npmrc`, without which no private package can be installed.
    const USUAL_HOME: &[&str] = &[
        ".asdfrc",
        ".bundle/config",
        ".cargo/config.toml",
        ".condarc",
        ".config/git/config",
        ".config/go/env",
        ".config/mise/config.toml",
        ".config/pip/pip.conf",
        ".config/uv/uv.toml",
        ".gemrc",
        ".gitconfig",
        ".npmrc",
        ".pip/pip.conf",
        ".tool-versions",
        ".yarnrc",
        ".yarnrc.yml",
    ];

    /// Returns the files that a configuration without a list means.
    pub fn usual_home() -> Vec<String> {
        Gates::USUAL_HOME.iter().map(|name| (*name).to_owned()).collect()
    }
}
