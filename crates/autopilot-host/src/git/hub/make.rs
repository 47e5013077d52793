//! The making of a hub: its config, and the user's objects as hard links.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ExpectedRef, Hub, base_ref};
use crate::fail;
use crate::git::command::{GitCommand, TRANSFER_TIMEOUT};
use crate::git::error::{GitError, OnFile};
use crate::git::repo::UserRepo;
use crate::git::state::write_atomic;

/// A HEAD that names no commit.
pub(super) const HEAD: &str = "ref: refs/heads/autopilot-nothing\n";

impl Hub {
    /// Makes the hub under another name and puts it in place when it is complete.
    pub(super) fn create(&self, repo: &UserRepo) -> Result<(), GitError> {
        let fresh = self.state.join("hub.git.new");
        if fresh.exists() {
            fs::remove_dir_all(&fresh).on("remove", &fresh)?;
        }
        GitCommand::bare_minimum("create the hub")
            .args(["init", "--quiet", "--bare", "--template="])
            .arg(format!("--object-format={}", repo.object_format))
            .arg(&fresh)
            .ok()?;
        write_atomic(&fresh.join("config"), self.config.as_bytes())?;
        write_atomic(&fresh.join("HEAD"), HEAD.as_bytes())?;
        let building = Self { dir: fresh.clone(), ..self.clone() };
        building.link_objects(repo)?;
        building.sync(repo)?;
        fail::point("hub.built");
        fs::rename(&fresh, &self.dir).on("rename", &fresh)?;
        fs::File::open(&self.state).and_then(|d| d.sync_all()).on("sync", &self.state)
    }

    /// Shares the user's objects by hard links. Links are only a saving: objects that they don't
    /// bring (another file system, borrowed objects, a gc at the same time) come as a pack.
    fn link_objects(&self, repo: &UserRepo) -> Result<(), GitError> {
        let from = repo.objects_dir();
        if from.join("info/alternates").exists()
            || link_tree(&from, &self.dir.join("objects")).is_err()
        {
            return self.forget_links();
        }
        let tip = repo.tip()?;
        let complete = self
            .git("check the linked objects")
            .args(["rev-list", "--objects", "--quiet", tip.as_str()])
            .timeout(TRANSFER_TIMEOUT)
            .run()?;
        if complete.code() == Some(0) {
            self.set_ref(&base_ref(repo), &tip, ExpectedRef::Absent)
        } else {
            self.forget_links()
        }
    }

    fn forget_links(&self) -> Result<(), GitError> {
        let objects = self.dir.join("objects");
        fs::remove_dir_all(&objects).on("remove", &objects)?;
        for dir in ["pack", "info"] {
            let dir = objects.join(dir);
            fs::create_dir_all(&dir).on("create", &dir)?;
        }
        Ok(())
    }

    /// Puts back what every hub has and somebody removed; none of it is about the work.
    pub(super) fn put_back_frame(&self) -> Result<(), GitError> {
        for dir in ["refs", "objects/pack", "objects/info"] {
            let dir = self.dir.join(dir);
            fs::create_dir_all(&dir).on("create", &dir)?;
        }
        for (name, text) in [("config", self.config.as_str()), ("HEAD", HEAD)] {
            let path = self.dir.join(name);
            if path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
                write_atomic(&path, text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Follows the user's settings: the config is rewritten only when it is one we would have
    /// written for other settings, never when something else is in it.
    pub(super) fn adopt_settings(&self, repo: &UserRepo) -> Result<(), GitError> {
        let config = self.dir.join("config");
        let found = fs::read_to_string(&config).on("read", &config)?;
        if found != self.config && is_ours(&found) {
            write_atomic(&config, self.config.as_bytes())?;
        }
        let exclude = self.dir.join("info/exclude");
        if fs::read(&exclude).ok().as_deref() != Some(&repo.excludes) {
            let info = self.dir.join("info");
            fs::create_dir_all(&info).on("create", &info)?;
            write_atomic(&exclude, &repo.excludes)?;
        }
        Ok(())
    }
}

/// Returns the config of a hub for this repository.
pub(super) fn config_text(repo: &UserRepo) -> String {
    let eol = repo
        .eol
        .iter()
        .filter_map(|(key, value)| Some(format!("\t{} = {value}\n", key.strip_prefix("core.")?)));
    config_with(&repo.object_format, &eol.collect::<String>())
}

/// Returns whether a config is one that we have written, for any settings.
pub(super) fn is_ours(found: &str) -> bool {
    let without_eol: String = found
        .lines()
        .filter(|line| {
            let line = line.trim();
            !["autocrlf", "eol"].iter().any(|key| {
                ["true", "false", "input", "lf", "crlf"]
                    .iter()
                    .any(|value| line == format!("{key} = {value}"))
            })
        })
        .map(|line| format!("{line}\n"))
        .collect();
    ["sha1", "sha256"].iter().any(|format| without_eol == config_with(format, ""))
}

fn config_with(object_format: &str, eol: &str) -> String {
    let (version, extension) = match object_format {
        "sha256" => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => (0, ""),
    };
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = true\n\
         \thooksPath = /dev/null\n\tfsmonitor = false\n\tlogAllRefUpdates = false\n\
         \tsafecrlf = false\n{eol}[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
         [transfer]\n\tfsckObjects = false\n{extension}"
    )
}

/// Makes hard links to all objects. Loose objects come before packs: a gc moves objects from the
/// first to the second, never back.
fn link_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut fans: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if name.len() == 2 {
            fans.push(PathBuf::from(name));
        }
    }
    fans.push(PathBuf::from("pack"));
    for fan in fans {
        let target = to.join(&fan);
        fs::create_dir_all(&target)?;
        for entry in fs::read_dir(from.join(&fan))? {
            let entry = entry?;
            let name = entry.file_name();
            let passing = name.to_string_lossy().starts_with("tmp_")
                || Path::new(&name).extension().is_some_and(|e| e == "keep" || e == "lock");
            if !passing && entry.file_type()?.is_file() {
                fs::hard_link(entry.path(), target.join(&name))?;
            }
        }
    }
    Ok(())
}
