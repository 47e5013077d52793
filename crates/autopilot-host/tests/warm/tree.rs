//! The worktree of a layer: exactly that of a cold room, and what commands do to it is seen.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use autopilot_host::git::Oid;
use autopilot_host::warm::{ColdReason, LayerFill, LayerKind};

use crate::world::{World, paths, put};

/// Lists a worktree: kind, mode, path, target of a link and content of a file.
const LIST: &str = "find . -mindepth 1 -not -path './target*' -printf '%y %m %p %l\\n' | sort; \
                    find . -type f -not -path './target*' | sort | xargs sha256sum";

const FILES: &[(&str, &str)] = &[
    (".gitattributes", "*.txt text eol=crlf\n"),
    (".gitignore", "target\n__pycache__\n"),
    ("Cargo.toml", ""),
    ("README", "one\n"),
    ("case", "lower\n"),
    ("dir/deep/a", "a\n"),
    ("dir/deep/b", "b\n"),
    ("file-to-dir", "a file\n"),
    ("dir-to-file/x", "x\n"),
    ("dir-to-link/x", "x\n"),
    ("gone/with/all", "gone\n"),
    ("run.sh", "#!/bin/sh\n"),
    ("text.txt", "one\ntwo\n"),
];

/// What a build leaves: some of it where the change deletes directories.
const BUILD: &str = "mkdir -p target gone/with/__pycache__ dir/__pycache__ && echo o > target/o && \
                     echo p | tee gone/with/__pycache__/x.pyc > dir/__pycache__/x.pyc";

pub fn as_cold(kind: LayerKind) {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    type Edit = fn(&Path);
    let edits: &[Edit] = &[
        |_| {},
        |user| put(user, "README", "two\n"),
        |user| fs::rename(user.join("case"), user.join("CASE")).unwrap(),
        |user| {
            fs::set_permissions(user.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        },
        |user| {
            fs::remove_file(user.join("file-to-dir")).unwrap();
            put(user, "file-to-dir/x/y", "y\n");
        },
        |user| {
            fs::remove_dir_all(user.join("dir-to-file")).unwrap();
            put(user, "dir-to-file", "now a file\n");
        },
        |user| {
            fs::remove_dir_all(user.join("dir-to-link")).unwrap();
            symlink("dir", user.join("dir-to-link")).unwrap();
        },
        |user| {
            fs::remove_file(user.join("README")).unwrap();
            symlink("case", user.join("README")).unwrap();
        },
        |user| fs::remove_dir_all(user.join("gone")).unwrap(),
        |user| {
            fs::remove_dir_all(user.join("gone")).unwrap();
            put(user, "gone/other", "back\n");
        },
        |user| fs::remove_file(user.join("dir/deep/a")).unwrap(),
        |user| {
            put(user, "text.txt", "three\n");
            put(user, "new/deep/er.txt", "new\n");
        },
        |user| {
            fs::remove_dir_all(user.join("dir")).unwrap();
            put(user, "dir", "a file now\n");
            put(user, "a space and\ta tab", "x\n");
            put(user, "-dash", "x\n");
        },
    ];
    for (number, edit) in edits.iter().enumerate() {
        let commit = world.change(edit);
        let cold = world.cold(&commit, LIST);
        let (warm, differences) = world.warm(&seed, kind, &commit, LIST);
        // The build's output in directories that stay is not part of a new worktree.
        let without: String =
            warm.out.lines().filter(|line| !line.contains("__pycache__")).collect();
        let is_gone = !fs::exists(world.user.join("gone/with")).unwrap();
        assert_eq!(warm.out.contains("gone/with/__pycache__"), !is_gone, "edit {number}");
        assert_eq!(without, cold.out.lines().collect::<String>(), "edit {number}");
        assert!(differences.is_empty(), "edit {number}: {differences:?}");
    }
    assert_eq!(world.layers(), [""; 0]);
    let again = world.store.find(crate::world::KEY).unwrap().unwrap();
    assert_eq!(again.seal().tree, seed.seal().tree);
}

pub fn seen(kind: LayerKind) {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let commit = world.change(|user| {
        put(user, "README", "two\n");
        put(user, "fresh/file", "new\n");
        fs::remove_dir_all(user.join("gone")).unwrap();
    });
    let seen = |script: &str| {
        let mut layer = world.store.layer(&seed, kind).unwrap();
        let filled = layer.fill(&commit).unwrap();
        let written = paths(&["README", "fresh/file"]);
        assert_eq!(filled, LayerFill { written, deleted: paths(&["gone/with/all"]) });
        let (ran, differences) = world.command(&mut layer, script).unwrap();
        assert_eq!(ran.code, Some(0), "{script}: {}", ran.out);
        differences
    };
    let changed = |script: &str, expected: &[&str]| {
        assert_eq!(seen(script).changed, paths(expected), "{script}");
    };
    changed("cat README fresh/file dir/deep/a > /dev/null; echo x > new; mkdir -p target/x", &[]);
    changed("echo x >> run.sh", &["run.sh"]);
    changed("echo x >> README; echo x >> fresh/file", &["README", "fresh/file"]);
    changed("chmod +x case README", &["README", "case"]);
    changed("chmod 000 case", &["case"]);
    changed("chmod 700 dir/deep; chmod 600 case", &[]);
    changed("rm case fresh/file", &["case", "fresh/file"]);
    changed("rm -r dir", &["dir/deep/a", "dir/deep/b"]);
    changed("rm -r dir && mkdir -p dir/deep && echo b > dir/deep/b", &["dir/deep/a"]);
    changed("rm -r dir && mkdir dir && chmod 000 dir", &["dir/deep/a", "dir/deep/b"]);
    changed("rm -r dir && echo > dir", &["dir/deep/a", "dir/deep/b"]);
    changed("cp -r dir other && rm -r dir && ln -s other dir", &["dir/deep/a", "dir/deep/b"]);
    changed("cp case other && ln -sf other case", &["case"]);
    changed("rm case && mkdir case", &["case"]);
    changed("rm case && mkfifo case", &["case"]);
    changed("echo x > other && mv other case", &["case"]);
    changed("printf 'lower\\n' > case", &[]);
    changed("ln -sf /etc fresh2; rm -r fresh; ln -s /etc fresh", &["fresh/file"]);
    // A file of the change that was written and put back: a build in between may have been led astray.
    for script in [
        "cp -p README keep && echo one > README && cp -p keep README",
        "touch -d 2001-01-01 README",
        "touch -r run.sh README",
        "cp -p README keep && mv keep README",
    ] {
        let differences = seen(script);
        assert_eq!((differences.changed, differences.touched), (vec![], paths(&["README"])));
    }
    let everything = seen("rm -r ../tree && mkdir ../tree || rm -rf ./* ./.git*");
    assert_eq!(everything.changed.len(), FILES.len());
}

pub fn refused(kind: LayerKind) {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let reason = |edit: fn(&Path)| {
        let commit = world.change(edit);
        let mut layer = world.store.layer(&seed, kind).unwrap();
        layer.fill(&commit).unwrap_err().cold_reason().cloned().unwrap()
    };
    let attributes = reason(|user| put(user, ".gitattributes", "*.txt text eol=lf\n"));
    assert_eq!(attributes, ColdReason::Attributes { path: ".gitattributes".into() });
    // Git is asked to track what the build of the base has left.
    let over_output = reason(|user| {
        put(user, ".gitignore", "");
        put(user, "target/o", "tracked now\n");
    });
    assert_eq!(over_output, ColdReason::BuildOutput { path: "target".into() });
    let mut layer = world.store.layer(&seed, kind).unwrap();
    let submodule =
        layer.fill(&with_submodule(&world)).unwrap_err().cold_reason().cloned().unwrap();
    assert_eq!(submodule, ColdReason::Submodule { path: "module".into() });
    let commit = world.change(|_| {});
    let mut layer = world.layer(&seed, kind, &commit);
    let (ran, _) = world.command(&mut layer, "rm -rf ../home && ln -s /etc ../home").unwrap();
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    let replaced = layer.before_command().unwrap_err().cold_reason().cloned();
    assert_eq!(replaced, Some(ColdReason::Replaced { path: "home".into() }));
    assert!(Path::new("/etc/passwd").exists());
}

/// A commit with a submodule, made in the hub.
fn with_submodule(world: &World) -> Oid {
    let index = world.state.join("index");
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git")
            .env("GIT_DIR", world.hub.dir())
            .env("GIT_INDEX_FILE", &index)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", world.base.as_str()]);
    let entry = format!("160000,{},module", "1".repeat(40));
    git(&["update-index", "--add", "--cacheinfo", &entry]);
    let tree = git(&["write-tree"]);
    Oid::parse(&git(&["commit-tree", "-m", "module", &tree])).unwrap()
}
