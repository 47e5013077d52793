//! The tools of these tests: launches, marks that find survivors, and the controller to be killed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use autopilot_host::exec::{self, Child, ChildWord, Control, Exit, Launch, Supervisor};
use autopilot_host::jail::{JailPlan, NamespaceProbe};
use autopilot_host::proc;
use autopilot_host::register::ProcessRegister;
use autopilot_host::sandbox::{self, HostSandboxMode, Probe, SandboxPlan};

/// The sandbox of every launch of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fence {
    Off,
    Jail,
    NoNamespaces,
}

const FENCES: [(Fence, &str); 3] =
    [(Fence::Off, ""), (Fence::Jail, "_in_the_jail"), (Fence::NoNamespaces, "_without_namespaces")];

static FENCE: AtomicU32 = AtomicU32::new(0);

impl Fence {
    pub fn suffix(self) -> &'static str {
        FENCES.iter().find(|(fence, _)| *fence == self).unwrap().1
    }
}

pub fn set_fence(fence: Fence) {
    let place = FENCES.iter().position(|(other, _)| *other == fence).unwrap();
    FENCE.store(u32::try_from(place).unwrap(), Ordering::Relaxed);
}

pub fn fence() -> Fence {
    FENCES[FENCE.load(Ordering::Relaxed) as usize].0
}

/// The user of a test: whoever runs the tests, or one without privileges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum User {
    Own,
    Plain,
}

impl User {
    pub fn suffix(self) -> &'static str {
        match self {
            User::Own => "",
            User::Plain => "_as_a_plain_user",
        }
    }
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The number of a user whom nothing belongs to.
const PLAIN_USER: u32 = 65_534;

/// Runs a test in a copy of this process that belongs to a user without privileges.
pub fn run_as_plain_user(name: &str) -> bool {
    use std::os::unix::process::CommandExt;
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
    let mut command = Command::new("/proc/self/exe");
    command.args([name, "--exact"]).env("HOME", home.path()).current_dir("/");
    command.uid(PLAIN_USER).gid(PLAIN_USER).stdin(Stdio::null());
    command.status().unwrap().success()
}

/// The plan of the jail under the fence of this test.
pub fn jail_plan(write: &[&Path]) -> JailPlan {
    // Once, and before anything is started: bubblewrap leaves a process to whoever inherits it.
    static PROBE: OnceLock<Probe> = OnceLock::new();
    let probe = PROBE
        .get_or_init(|| sandbox::probe(&std::env::var_os("PATH").unwrap(), &Supervisor::default()));
    assert_eq!(probe.namespaces, NamespaceProbe::Given, "this kernel gives no namespaces");
    let write = write.iter().map(|path| path.to_path_buf()).collect();
    let wanted = JailPlan { write, ..JailPlan::default() };
    match probe.choose(HostSandboxMode::Landlock, wanted).unwrap().plan {
        SandboxPlan::Jail(plan) => JailPlan { namespaces: fence() == Fence::Jail, ..plan },
        SandboxPlan::Off | SandboxPlan::Bwrap { .. } => panic!("there is no Landlock"),
    }
}

pub fn sandbox_plan(write: &[&Path]) -> SandboxPlan {
    match fence() {
        Fence::Off => SandboxPlan::Off,
        Fence::Jail | Fence::NoNamespaces => SandboxPlan::Jail(jail_plan(write)),
    }
}

/// Keeps a path visible to the launch.
pub fn show(launch: &mut Launch, path: &Path) {
    if let SandboxPlan::Jail(plan) = &mut launch.sandbox {
        plan.show.push(path.into());
    }
}

/// The supervisor of a running agent: the last of its ancestors before this process.
pub fn supervisor_of(agent: i32) -> i32 {
    let us = i32::try_from(std::process::id()).unwrap();
    let mut pid = agent;
    loop {
        match proc::read(pid).unwrap().parent {
            parent if parent == us => return pid,
            parent => pid = parent,
        }
    }
}

/// Processes that see a mount at or below `path`.
pub fn mounts_at(path: &Path) -> Vec<i32> {
    let needle = path.to_str().unwrap();
    let holds = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
            .is_ok_and(|table| table.lines().any(|line| line.contains(needle)))
    };
    proc::all().iter().map(|process| process.id.pid).filter(holds).collect()
}

pub fn kill(pid: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
}

/// Runs a launch to its end and returns what it printed.
pub fn said(launch: Launch) -> String {
    block_on(async {
        let (_, child) = exec::spawn(launch).await.unwrap();
        let exit = end(child).await;
        assert!(exit.code.is_some() && !exit.supervisor_lost, "{exit:?}");
        println!("  {}", exit.output.stderr.text.replace('\n', "\n  "));
        exit.output.stdout.text.clone()
    })
}

/// A number no other process has among its arguments; `sleep` accepts it.
pub fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("7654.{}{count:03}", std::process::id())
}

/// Living processes with the mark among their arguments.
pub fn marked(mark: &str) -> Vec<i32> {
    let holds = |pid: i32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(mark.len()).any(|window| window == mark.as_bytes()))
    };
    let us = i32::try_from(std::process::id()).unwrap();
    proc::all()
        .iter()
        .filter(|process| !process.is_zombie() && process.id.pid != us)
        .map(|process| process.id.pid)
        .filter(|pid| holds(*pid))
        .collect()
}

pub fn assert_nobody(mark: &str) {
    assert_eq!(marked(mark), Vec::<i32>::new(), "survivors of {mark}");
}

/// Waits for `condition`, which another process brings about.
pub fn until(what: &str, limit: Duration, condition: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < limit, "{what} did not come about within {limit:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    started.elapsed()
}

pub fn launch(program: &str, args: &[&str]) -> Launch {
    let mut launch = Launch::new(program, "/");
    launch.args = args.iter().map(OsString::from).collect();
    launch.env.insert("PATH".into(), std::env::var_os("PATH").unwrap());
    launch.env.insert("HOME".into(), std::env::var_os("HOME").unwrap_or("/".into()));
    launch.sandbox = sandbox_plan(&[]);
    launch
}

pub fn shell(script: &str) -> Launch {
    launch("sh", &["-c", script])
}

/// A daemon that left the session, the environment and good manners, and that has a child.
pub fn daemon(mark: &str) -> String {
    format!(
        "( setsid env -i PATH=$PATH sh -c 'trap \"\" TERM HUP INT; \
         ( setsid env -i sleep {mark} & ); while :; do sleep {mark}; done' {mark} & )"
    )
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(5));
    result
}

/// Starts the script and waits until it says `ready`.
pub async fn ready(launch: Launch) -> (Control, Child) {
    let (control, mut child) = exec::spawn(launch).await.unwrap();
    loop {
        match child.next().await {
            ChildWord::Line(line) if line.text == "ready" => return (control, child),
            ChildWord::Line(_) | ChildWord::Stopped { .. } => {}
            ChildWord::Ended(exit) => panic!("ended before it was ready: {exit:?}"),
        }
    }
}

pub async fn end(child: Child) -> Exit {
    tokio::time::timeout(Duration::from_secs(30), child.wait()).await.expect("an end within 30 s")
}

/// The body of the controller that is killed: starts the script and waits for ever.
pub fn controller(args: &[OsString]) -> ExitCode {
    let script = args[0].to_str().unwrap();
    let suffix = args[1].to_str().unwrap();
    set_fence(FENCES.iter().find(|(_, other)| *other == suffix).unwrap().0);
    block_on(async {
        let mut launch = shell(script);
        if let (Some(dir), SandboxPlan::Jail(plan)) =
            (args.get(2).filter(|dir| !dir.is_empty()), &mut launch.sandbox)
        {
            plan.write.push(dir.into());
        }
        launch.register = args.get(3).map(ProcessRegister::at);
        let (_control, child) = ready(launch).await;
        println!("{}", child.agent().pid);
        std::io::stdout().flush().unwrap();
        child.wait().await;
    });
    ExitCode::SUCCESS
}

/// Starts a controller in a separate process and waits until its agent is ready.
pub fn start_controller(script: &str, write: Option<&Path>) -> std::process::Child {
    start_registering(script, write, None)
}

/// Starts a controller that registers its trees in a directory.
pub fn start_registering(
    script: &str,
    write: Option<&Path>,
    register: Option<&Path>,
) -> std::process::Child {
    let mut controller = Command::new(Path::new("/proc/self/exe"))
        .args(["__controller", script, fence().suffix()])
        .arg(write.unwrap_or(Path::new("")))
        .args(register)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(controller.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.trim().parse::<i32>().is_ok(), "{line:?}");
    controller
}

/// Chains in which each process lives only long enough to fork the next, for a minute at most.
pub fn comets() -> ExitCode {
    const CHAINS: usize = 4;
    let ends = Instant::now() + Duration::from_secs(60);
    for _ in 0..CHAINS {
        // SAFETY: this process has a single thread, and the copies only fork and exit.
        unsafe {
            if libc::fork() == 0 {
                libc::setsid();
                while Instant::now() < ends && libc::fork() == 0 {}
                libc::_exit(0);
            }
        }
    }
    println!("ready");
    std::thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}

pub const BOMB_PROCESSES: usize = 200;

/// Processes that ignore TERM, a third in sessions of their own, each forking all the time others
/// that live for a moment; for a minute at most.
pub fn bomb() -> ExitCode {
    let ends = Instant::now() + Duration::from_secs(60);
    for number in 0..BOMB_PROCESSES {
        // SAFETY: this process has a single thread, and the copies only fork, sleep and exit.
        unsafe {
            for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
                libc::signal(signal, libc::SIG_IGN);
            }
            if libc::fork() == 0 {
                // Nobody waits for the processes that it forks.
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                if number % 3 == 0 {
                    libc::setsid();
                }
                while Instant::now() < ends {
                    libc::usleep(300_000);
                    if libc::fork() == 0 {
                        libc::usleep(50_000);
                        libc::_exit(0);
                    }
                }
                libc::_exit(0);
            }
        }
    }
    println!("ready");
    std::thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}
