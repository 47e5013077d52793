//! A git between Autopilot and the real one, which does to some commands what it is told to.
#![allow(
    clippy::unwrap_used,
    reason = "test support: what can't be set up must fail the test at once"
)]

use crate::stage::Stage;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The faulty git of a stage. It kills itself unless it is told otherwise.
pub struct FaultyGit {
    dir: PathBuf,
}

impl FaultyGit {
    /// Puts a faulty git before the real one on the stage's PATH.
    pub fn on(stage: &mut Stage) -> FaultyGit {
        let dir = stage.folder().join("faulty");
        let path = std::env::var("PATH").unwrap();
        let real =
            std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
        fs::create_dir(&dir).unwrap();
        let (here, real) = (dir.display(), real.unwrap());
        let script = format!(
            "#!/bin/sh\nskip=\nfor word in \"$@\"; do\n  case \"$skip$word\" in\n    -c) skip=x;;\n    \
             x*) skip=;;\n    *) verb=$word; break;;\n  esac\ndone\n\
             echo \"$verb\" >> '{here}/verbs'\n\
             if [ -e \"{here}/$verb.always\" ] || rm \"{here}/$verb.once\" 2>/dev/null || \
             {{ [ -e '{here}/at' ] && [ \"$(wc -l < '{here}/verbs')\" -eq \"$(cat '{here}/at')\" ]; }}; \
             then\n  echo \"$verb\" >> '{here}/struck'\n  . '{here}/how'\nfi\nexec '{}' \"$@\"\n",
            real.display()
        );
        fs::write(dir.join("git"), script).unwrap();
        fs::set_permissions(dir.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        stage.set("PATH", &format!("{here}:{path}"));
        let git = FaultyGit { dir };
        git.does("kill -9 $$");
        git
    }

    /// The directory with its files: `<verb>.once` and `<verb>.always` let it strike.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sets what it does when it strikes, as a line for the shell.
    pub fn does(&self, how: &str) {
        fs::write(self.dir.join("how"), how).unwrap();
    }

    /// Lets it strike at the next command of this name.
    pub fn strike_once(&self, verb: &str) {
        fs::write(self.dir.join(format!("{verb}.once")), "").unwrap();
    }

    /// Lets it strike at every command of this name.
    pub fn strike_always(&self, verb: &str) {
        fs::write(self.dir.join(format!("{verb}.always")), "").unwrap();
    }

    /// Lets it strike at the command of this number, counted from 1.
    pub fn strike_at(&self, number: usize) {
        fs::write(self.dir.join("at"), number.to_string()).unwrap();
    }

    /// Ends [`FaultyGit::strike_always`].
    pub fn heal(&self, verb: &str) {
        fs::remove_file(self.dir.join(format!("{verb}.always"))).unwrap();
    }

    /// The lines of one of its files: `verbs` has all commands, `struck` those it struck at.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
