//! The world outside the jail: everything that an attempt may aim at, and how it is seen that
//! nothing there has changed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::call::sys;
use crate::scene::{SECRET, Scene};
use crate::{kernel_gate, left, socket};

/// The number under which the controller has a file open that its programs must not inherit.
const INHERITED_FD: i32 = 77;

/// What is seen outside: a name and a state.
pub type Sight = BTreeMap<String, String>;

pub struct Outside {
    pub scene: Scene,
    stranger: Child,
    terminal: OwnedFd,
    _terminal_slave: OwnedFd,
    secret: Box<[u8]>,
    listeners: BTreeMap<&'static str, UnixListener>,
    messages: UnixDatagram,
    pipe: OwnedFd,
    server: TcpListener,
    /// How often each has been reached so far.
    reached: BTreeMap<&'static str, usize>,
}

impl Outside {
    /// Makes the world of one setting in `base`, a directory of the user's.
    pub fn new(base: &Path, run: PathBuf, mounted: PathBuf, setuid: PathBuf) -> Outside {
        let mark = format!("attempt-{}", std::process::id());
        let other_tmp = PathBuf::from(format!("/tmp/{mark}-other"));
        let dirs = ["slot", "outside", "hidden", "home"].map(|name| base.join(name));
        for dir in dirs.iter().chain([&other_tmp]) {
            fs::create_dir(dir).unwrap();
        }
        let [slot, outside, hidden, home] = dirs;
        fs::write(hidden.join("journal"), SECRET).unwrap();
        fs::write(home.join("key"), SECRET).unwrap();
        fs::write(other_tmp.join("draft"), SECRET).unwrap();
        std::env::set_current_dir(&outside).unwrap();
        let pty = nix::pty::openpty(None, None).unwrap();
        let secret: Box<[u8]> = SECRET.as_bytes().into();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        nonblocking(&pty.master);
        let stranger = stranger();
        let pid = |id: u32| i32::try_from(id).unwrap();
        let scene = Scene {
            slot,
            outside,
            hidden,
            home,
            run,
            other_tmp,
            mounted,
            setuid,
            terminal: nix::unistd::ttyname(&pty.slave).unwrap(),
            disk: disk(),
            controller: pid(std::process::id()),
            stranger: pid(stranger.id()),
            secret_address: secret.as_ptr().expose_provenance(),
            secret_bytes: secret.len(),
            inherited_fd: INHERITED_FD,
            port: server.local_addr().unwrap().port(),
            key: pid(std::process::id()) * 2,
            mark,
        };
        let listeners = listeners(&scene);
        let name = SocketAddr::from_abstract_name(socket::datagram_name(&scene)).unwrap();
        let messages = UnixDatagram::bind_addr(&name).unwrap();
        messages.set_nonblocking(true).unwrap();
        fs::write(scene.shared_memory_of_user(), SECRET).unwrap();
        share_secret(&scene);
        let pipe = pipe(&scene.pipe());
        let outside = Outside {
            scene,
            stranger,
            terminal: pty.master,
            _terminal_slave: pty.slave,
            secret,
            listeners,
            messages,
            pipe,
            server,
            reached: BTreeMap::new(),
        };
        outside.lay_out();
        outside
    }

    /// Puts the files outside there, as every attempt is to find them.
    fn lay_out(&self) {
        let dir = &self.scene.outside;
        fs::write(self.scene.precious(), "precious").unwrap();
        fs::create_dir_all(dir.join("empty")).unwrap();
        let file = File::options().write(true).open(self.scene.precious()).unwrap();
        // Without the flag that closes it when a program is started.
        sys!(libc::SYS_dup3, file.as_raw_fd(), INHERITED_FD, 0).unwrap();
    }

    /// Opens the socket of a program that is started late.
    pub fn open_late_socket(&mut self) {
        let listener = listener(&self.scene.socket_late());
        self.listeners.insert("late socket", listener);
    }

    /// Looks at everything.
    pub fn look(&mut self) -> Sight {
        let mut sight = Sight::new();
        sight_of_files(&self.scene.outside, &mut sight);
        self.look_at_processes(&mut sight);
        self.look_at_sockets(&mut sight);
        let scene = &self.scene;
        let exists = |path: &Path| fs::symlink_metadata(path).is_ok().to_string();
        for path in scene.left_files() {
            sight.insert(path.display().to_string(), exists(&path));
        }
        sight.insert("control group".into(), control_group(scene).exists().to_string());
        sight.insert("covered".into(), exists(&scene.mounted.join("cover")));
        let shared = fs::read_to_string(scene.shared_memory_of_user());
        sight.insert("shared memory of the user".into(), format!("{shared:?}"));
        for (what, find) in LEFT {
            sight.insert((*what).into(), find(scene).is_ok().to_string());
        }
        let left = with_mark(&scene.mark);
        sight.insert("processes left".into(), left.len().to_string());
        sight
    }

    fn look_at_processes(&mut self, sight: &mut Sight) {
        const NICE: usize = 16;
        const POLICY: usize = 38;
        let stranger = self.scene.stranger;
        let stat = fs::read_to_string(format!("/proc/{stranger}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or("gone");
        let lives = echoes(&mut self.stranger);
        let io_priority = sys!(libc::SYS_ioprio_get, 1, stranger);
        let processors = {
            let mut mask = [0u64; 16];
            let bytes = size_of_val(&mask);
            let seen = sys!(libc::SYS_sched_getaffinity, stranger, bytes, mask.as_mut_ptr());
            format!("{seen:?} {mask:?}")
        };
        let (nice, policy) = (field(NICE), field(POLICY));
        let text = format!("{lives} {nice} {policy} {io_priority:?} {processors}");
        sight.insert("stranger".into(), text);
        let pending = pending();
        let limit = getrlimit(Resource::RLIMIT_CPU).unwrap();
        let oom = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
        let secret = &self.secret;
        let text = format!("{pending} {limit:?} {} {secret:?}", oom.trim());
        sight.insert("controller".into(), text);
    }

    fn look_at_sockets(&mut self, sight: &mut Sight) {
        let mut reach = |name: &'static str, count: usize| {
            let total = self.reached.entry(name).or_default();
            *total += count;
            sight.insert(name.into(), total.to_string());
        };
        for (name, listener) in &self.listeners {
            let count = std::iter::from_fn(|| listener.accept().ok()).count();
            reach(name, count);
        }
        let server = std::iter::from_fn(|| self.server.accept().ok()).count();
        reach("server", server);
        let messages = std::iter::from_fn(|| self.messages.recv(&mut [0; 8]).ok()).count();
        reach("messages", messages);
        reach("terminal", read_all(&self.terminal));
        reach("pipe", read_all(&self.pipe));
    }

    /// Makes everything as it was, after an attempt that has changed something.
    pub fn mend(&mut self) {
        let scene = &self.scene;
        clear(&scene.outside);
        for path in scene.left_files() {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir(control_group(scene));
        let _ = fs::remove_file(scene.socket_late());
        self.listeners.remove("late socket");
        remove_left(scene);
        for pid in with_mark(&scene.mark) {
            let _ = sys!(libc::SYS_kill, pid, libc::SIGKILL);
        }
        fs::write(scene.shared_memory_of_user(), SECRET).unwrap();
        self.secret.copy_from_slice(SECRET.as_bytes());
        take_signals();
        self.end_stranger();
        self.stranger = stranger();
        self.scene.stranger = i32::try_from(self.stranger.id()).unwrap();
        self.lay_out();
    }

    fn end_stranger(&mut self) {
        let _ = self.stranger.kill();
        self.stranger.wait().unwrap();
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.end_stranger();
        let scene = &self.scene;
        clear(&scene.outside);
        remove_left(scene);
        if let Ok(segment) = sys!(libc::SYS_shmget, left::key_of_user(scene), 0, 0) {
            let _ = sys!(libc::SYS_shmctl, segment, libc::IPC_RMID, 0);
        }
        let _ = fs::remove_file(scene.shared_memory_of_user());
        let _ = fs::remove_dir_all(&scene.other_tmp);
    }
}

type Finder = fn(&Scene) -> Result<(), nix::errno::Errno>;

const LEFT: &[(&str, Finder)] = &[
    ("shared memory", left::find_memory),
    ("semaphores", left::find_semaphore),
    ("message queue", left::find_queue),
    ("POSIX message queue", left::find_posix_queue),
    ("key", kernel_gate::find_key),
];

fn remove_left(scene: &Scene) {
    if let Ok(id) = sys!(libc::SYS_shmget, scene.key, 0, 0) {
        let _ = sys!(libc::SYS_shmctl, id, libc::IPC_RMID, 0);
    }
    if let Ok(id) = sys!(libc::SYS_semget, scene.key, 0, 0) {
        let _ = sys!(libc::SYS_semctl, id, 0, libc::IPC_RMID, 0);
    }
    if let Ok(id) = sys!(libc::SYS_msgget, scene.key, 0) {
        let _ = sys!(libc::SYS_msgctl, id, libc::IPC_RMID, 0);
    }
    let name = crate::call::c(Path::new(&scene.mark));
    let _ = sys!(libc::SYS_mq_unlink, name.as_ptr());
    kernel_gate::remove_key(scene);
}

/// A program that repeats what it is told: one that was killed does not, from that moment on.
fn stranger() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn echoes(program: &mut Child) -> bool {
    let (input, output) = (program.stdin.as_mut().unwrap(), program.stdout.as_mut().unwrap());
    input.write_all(b"#").is_ok() && output.read_exact(&mut [0]).is_ok()
}

fn listener(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// Binds as a program does that has gone to the directory of its socket.
fn relative_listener(path: &Path) -> UnixListener {
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(path.parent().unwrap()).unwrap();
    let listener = listener(Path::new(path.file_name().unwrap()));
    std::env::set_current_dir(before).unwrap();
    listener
}

fn listeners(scene: &Scene) -> BTreeMap<&'static str, UnixListener> {
    let name = SocketAddr::from_abstract_name(scene.abstract_name()).unwrap();
    let of_name = UnixListener::bind_addr(&name).unwrap();
    of_name.set_nonblocking(true).unwrap();
    BTreeMap::from([
        ("abstract socket", of_name),
        ("socket in /run", listener(&scene.socket_in_run())),
        ("socket in the home", listener(&scene.socket_in_home())),
        ("socket in /tmp", listener(&scene.socket_in_tmp())),
        ("socket of a relative path", relative_listener(&scene.socket_relative())),
    ])
}

/// Opens both ends, so that a reader is there and nobody's end closes it.
fn pipe(path: &Path) -> OwnedFd {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let fd: OwnedFd = File::options().read(true).write(true).open(path).unwrap().into();
    nonblocking(&fd);
    fd
}

fn share_secret(scene: &Scene) {
    let key = left::key_of_user(scene);
    let segment = sys!(libc::SYS_shmget, key, 4096, libc::IPC_CREAT | 0o600).unwrap();
    let at = sys!(libc::SYS_shmat, segment, 0, 0).unwrap();
    let at = std::ptr::with_exposed_provenance_mut::<u8>(usize::try_from(at).unwrap());
    // SAFETY: the segment has a page, which nobody else writes to.
    unsafe { std::ptr::copy_nonoverlapping(SECRET.as_ptr(), at, SECRET.len()) };
}

/// Returns a disk, by preference one that nothing is on.
fn disk() -> PathBuf {
    let is_disk =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let mut disks: Vec<PathBuf> =
        fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().path()).filter(is_disk).collect();
    disks.sort_by_key(|path| !path.to_string_lossy().contains("loop"));
    disks.into_iter().next().expect("a machine with a disk")
}

fn control_group(scene: &Scene) -> PathBuf {
    kernel_gate::control_groups().join(&scene.mark)
}

/// Everything about every file: contents, mode, owner, links, times, attributes and flags.
fn sight_of_files(dir: &Path, sight: &mut Sight) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_file() { fs::read(&path).unwrap_or_default() } else { vec![] };
        let text = format!(
            "{:o} {}:{} links {} modified {}.{} changed {}.{} attributes {} flags {:?} {:?}",
            found.mode(),
            found.uid(),
            found.gid(),
            found.nlink(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
            attributes(&path),
            flags(&path),
            String::from_utf8_lossy(&content),
        );
        sight.insert(path.display().to_string(), text);
        if found.is_dir() {
            sight_of_files(&path, sight);
        }
    }
}

fn attributes(path: &Path) -> String {
    let path = crate::call::c(path);
    let mut names = [0u8; 256];
    let bytes = sys!(libc::SYS_llistxattr, path.as_ptr(), names.as_mut_ptr(), names.len());
    let bytes = bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap());
    String::from_utf8_lossy(&names[..bytes]).replace('\0', " ")
}

fn flags(path: &Path) -> Option<libc::c_int> {
    // A pipe would keep us waiting for its other end.
    let found = fs::symlink_metadata(path).ok()?;
    let file =
        if found.is_file() || found.is_dir() { File::open(path).ok()? } else { return None };
    let mut flags: libc::c_int = 0;
    sys!(libc::SYS_ioctl, file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags).ok()?;
    Some(flags)
}

/// Removes everything in a directory, immutable files too.
fn clear(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if !is_dir && flags(&path).is_some_and(|flags| flags & 0x10 != 0) {
            let file = File::open(&path).unwrap();
            let none: libc::c_int = 0;
            let fd = file.as_raw_fd();
            sys!(libc::SYS_ioctl, fd, libc::FS_IOC_SETFLAGS, &raw const none).unwrap();
        }
        if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
}

fn nonblocking(fd: &OwnedFd) {
    sys!(libc::SYS_fcntl, fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK).unwrap();
}

/// Returns how many bytes have come.
fn read_all(source: &OwnedFd) -> usize {
    let mut file = File::from(source.try_clone().unwrap());
    let mut buffer = [0; 256];
    match file.read(&mut buffer) {
        Ok(count) => count,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            0
        }
    }
}

/// Returns whether the signal that attempts send is waiting.
fn pending() -> bool {
    let mut set = SigSet::empty();
    let bytes = 8;
    // SAFETY: the kernel writes eight bytes, and the set is larger.
    let done = unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut set, bytes) };
    assert_eq!(done, 0);
    set.contains(Signal::SIGUSR1)
}

fn take_signals() {
    let mut set = SigSet::empty();
    set.add(Signal::SIGUSR1);
    while pending() {
        set.wait().unwrap();
    }
}

/// Returns the processes that carry the mark among their arguments.
pub fn with_mark(mark: &str) -> Vec<i32> {
    let processes = autopilot_host::proc::all();
    let living = processes.iter().filter(|process| !process.is_zombie());
    let marked = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    living.map(|process| process.id.pid).filter(marked).collect()
}
