//! Faults of a real disk under the state directory: a quota that is used up, a device that fails every
//! read and write, a mount that vanishes. No task may pay for them. Needs root, to mount an image.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::small_disk::is_root;
use autopilot_testkit::stage::{APPROVES, Ended, Stage, Started};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An image with a file system, mounted at the state directory in a mount namespace of its own.
struct ImageDisk {
    holder: Child,
    image: PathBuf,
    state: PathBuf,
}

impl Drop for ImageDisk {
    fn drop(&mut self) {
        let _ended_already = self.holder.kill();
        let _ended_already = self.holder.wait();
    }
}

impl ImageDisk {
    /// `part` is the directory of the image that is mounted at the state directory.
    fn under(stage: &Stage, make: &str, part: &str) -> ImageDisk {
        assert!(is_root(), "mounting an image needs root");
        let (state, image) = (stage.state(), stage.folder().join("disk.img"));
        fs::create_dir_all(&state).unwrap();
        let image_name = image.display();
        let script = format!(
            "truncate -s 512M '{image_name}' && {make} -q '{image_name}' >&2 && mount -o loop \
             '{image_name}' '{0}.top' && {part} mount --bind '{0}.top/s' '{0}' && echo mounted && \
             exec sleep 3600",
            state.display()
        );
        fs::create_dir(format!("{}.top", state.display())).unwrap();
        let mut holder = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n", "{make} could not be mounted");
        ImageDisk { holder, image, state }
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-m", "--", program]);
        command
    }

    #[track_caller]
    fn shell(&self, script: &str) {
        let script = script.replace("DISK", &self.state.display().to_string());
        let status = self.inside("sh").args(["-c", &script]).status().unwrap();
        assert!(status.success(), "{script}");
    }

    fn mount(&self) {
        self.shell(&format!("mount -o loop '{}' 'DISK.top'", self.image.display()));
        self.shell("mount --bind DISK.top/s DISK");
    }

    fn start(&self, stage: &Stage, args: &[&str]) -> Started {
        let plain = stage.command(args);
        let mut command = self.inside(env!("CARGO_BIN_EXE_autopilot"));
        command.arg("-C").arg(stage.root()).args(args).env_clear().stdin(Stdio::null());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        stage.start_command(command)
    }
}

/// A run whose builder waits until the test has done something to the disk.
struct WaitingRun {
    stage: Stage,
    disk: ImageDisk,
    run: Started,
    go: PathBuf,
}

impl WaitingRun {
    fn on(make: &str, part: &str) -> WaitingRun {
        let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
        let disk = ImageDisk::under(
            &stage,
            make,
            &part.replace("DISK", &stage.state().display().to_string()),
        );
        let (here, go) = (stage.folder().join("here"), stage.folder().join("go"));
        let build = |first: &str, run: &str| {
            format!(
                "- step: [build, fix]\n  {first}do:\n    - run: \"{run}\"\n    - run: \"printf \
                 'start\\ndone\\n' > app.txt\"\n    - answer: {{ changed_files: [app.txt], notes: x }}\n"
            )
        };
        let wait = format!(
            "touch '{}'; while [ ! -e '{}' ]; do sleep 0.05; done",
            here.display(),
            go.display()
        );
        stage.agents(&[&build("attempt: 1\n  ", &wait), &build("", "true"), APPROVES]);
        stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: off }\n");
        let run = disk.start(&stage, &["run", "tasks/say-done.md"]);
        stage.wait_until("the builder is at work", |_| here.exists());
        WaitingRun { stage, disk, run, go }
    }

    fn builds(&self) {
        fs::write(&self.go, "").unwrap();
    }

    /// Waits until the fault is told.
    fn is_noticed(&self) {
        self.stage.wait_until("it is noticed", |_| {
            let err = self.run.err();
            err.contains("next try") || err.contains("autopilot resume")
        });
    }

    /// The run ends as if nothing had happened.
    fn ends_done(self) {
        let WaitingRun { stage, disk, run, .. } = self;
        let mut ended = run.wait();
        if ended.code == 2 {
            ended = disk.start(&stage, &["resume"]).wait();
        }
        is_done(&stage, &ended);
    }
}

fn is_done(stage: &Stage, ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.said());
    let task = stage.first_task();
    assert_eq!((&task["retries"], &task["iteration"]), (&0.into(), &1.into()), "it paid");
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn a_quota_that_is_used_up_for_a_while_costs_the_task_nothing() {
    let waiting = WaitingRun::on("mkfs.btrfs", "btrfs subvolume create 'DISK.top/s' >&2 &&");
    // The limit is that of the part alone: to lift it takes room as well.
    waiting.disk.shell(
        "btrfs quota enable DISK.top && btrfs quota rescan -w DISK.top >/dev/null && btrfs qgroup \
         limit 16K 0/$(btrfs inspect-internal rootid DISK) DISK.top",
    );
    waiting.builds();
    waiting.is_noticed();
    waiting.disk.shell("btrfs qgroup limit none 0/$(btrfs inspect-internal rootid DISK) DISK.top");
    waiting.ends_done();
}

#[test]
fn a_disk_that_fails_every_read_and_write_rests_the_run_and_costs_nothing() {
    let waiting = WaitingRun::on("mkfs.ext4", "mkdir 'DISK.top/s' &&");
    // The file system shuts itself down as it does when its device fails: EXT4_IOC_SHUTDOWN.
    waiting.disk.shell(
        "python3 -c 'import fcntl, os; fcntl.ioctl(os.open(\"DISK\", os.O_RDONLY), 0x8004587d, \
         bytes(4))'",
    );
    waiting.builds();
    let WaitingRun { stage, disk, run, .. } = waiting;
    let rested = run.wait();
    assert_eq!(rested.code, 2, "{}", rested.said());
    let refused = disk.start(&stage, &["resume"]).wait();
    assert_eq!(refused.code, 2, "{}", refused.said());
    disk.shell("umount -l DISK && umount -l DISK.top");
    disk.mount();
    let ended = disk.start(&stage, &["resume"]).wait();
    is_done(&stage, &ended);
}

#[test]
fn a_mount_that_vanishes_rests_the_run_and_costs_nothing() {
    let waiting = WaitingRun::on("mkfs.ext4", "mkdir 'DISK.top/s' &&");
    waiting.disk.shell("umount -l DISK && umount -l DISK.top");
    let WaitingRun { stage, disk, run, go } = waiting;
    let rested = run.wait();
    assert_eq!(rested.code, 2, "{}", rested.said());
    for text in ["the file system of the state directory", "mount it again", "autopilot resume"] {
        assert!(rested.said().contains(text), "{text}: {}", rested.said());
    }
    fs::write(go, "").unwrap();
    disk.mount();
    let ended = disk.start(&stage, &["resume"]).wait();
    is_done(&stage, &ended);
}
