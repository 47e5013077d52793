//! The building of a jail's file system, in the mount namespace of its init.
//!
//! Nothing is unmounted and no root is changed: what an agent must not see is covered. What has to
//! stay visible is copied before anything is covered. At last every mount becomes read-only, and
//! those that may be written become writable again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{SFlag, fstat};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::mount::{self, MountReach, NO_DEVICES, NO_SETUID, READ_ONLY};
use super::plan::{JailMount, JailPlan};
use super::{overlay, socket, view};

/// The devices of a jail.
const NODES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The links that programs expect in `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Directories of temporary files, which all users of a machine share.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The options of a file system that holds nothing but places for mounts.
const PLACES: &str = "mode=755,size=1m";

const SHARED_MEMORY: &str = "/dev/shm";
const TERMINALS: &str = "/dev/pts";
const PROCESSES: &str = "/proc";

/// The step of building a jail that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} `{path}` in the jail")]
pub struct JailError {
    what: &'static str,
    path: PathBuf,
    pub(crate) source: io::Error,
}

impl JailError {
    fn at<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> JailError {
        let path = path.to_path_buf();
        move |source| JailError { what, path, source: source.into() }
    }
}

/// Builds the file system. `named` are all the paths that the program needs to find. Returns the
/// paths that may be written in it.
pub fn build(plan: &JailPlan, named: &[PathBuf]) -> Result<Vec<PathBuf>, JailError> {
    let sockets = socket::bound();
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(JailError::at("read the mounts of", Path::new("/proc/self")))?;
    let points = view::mount_points(&table);
    let write = canonical(&plan.write)?;
    mount::make_private().map_err(JailError::at("separate", Path::new("/")))?;
    let taken = taken(&plan.mounts)?;
    let masks = masks(plan, &write, named)?;
    let covered: Vec<&Path> = masks.iter().map(|mask| mask.at.as_path()).collect();
    let writable_before: Vec<&PathBuf> = write.iter().filter(|path| is_writable(path)).collect();
    for mask in &masks {
        mask.lay()?;
    }
    furnish_devices()?;
    mount::processes(Path::new(PROCESSES))
        .map_err(JailError::at("mount a process table at", Path::new(PROCESSES)))?;
    for path in outermost(&write).filter(|path| !points.contains(*path)) {
        bind_to_itself(path)?;
    }
    let hidden = hide(&plan.hide, named)?;
    for (tree, at) in &taken {
        mount::attach(tree, at).map_err(JailError::at("mount", at))?;
    }
    mask_sockets(&sockets, &write, &plan.sockets)?;
    let all = READ_ONLY | NO_SETUID | NO_DEVICES;
    mount::change(Path::new("/"), MountReach::AllBelow, all, 0)
        .map_err(JailError::at("make everything read-only below", Path::new("/")))?;
    for path in writable_before {
        let is_within = write.iter().any(|other| view::is_below(path, other));
        match mount::change(path, MountReach::One, 0, READ_ONLY) {
            // It is part of another writable path and has no mount of its own.
            Err(error) if is_within && error.raw_os_error() == Some(libc::EINVAL) => {}
            done => done.map_err(JailError::at("allow writing to", path))?,
        }
    }
    let is_open = |point: &PathBuf| {
        write.iter().any(|path| view::is_below(point, path))
            && !covered.iter().any(|mask| point.starts_with(mask))
            && !hidden.iter().any(|hidden| point.starts_with(hidden))
    };
    for point in points.iter().filter(|point| is_open(point)) {
        // A mount that was read-only before stays so, which is no failure.
        let _ = mount::change(point, MountReach::One, 0, READ_ONLY);
    }
    for (_, at) in &taken {
        let at = at.canonicalize().map_err(JailError::at("find", at))?;
        // One at a writable path itself is open already.
        if write.iter().any(|path| view::is_below(&at, path)) {
            mount::change(&at, MountReach::One, 0, READ_ONLY)
                .map_err(JailError::at("allow writing to", &at))?;
        }
    }
    let mut open = reopen(&masks)?;
    open.extend(write);
    Ok(open)
}

/// Returns the paths without links; one that is missing is an error.
fn canonical(paths: &[PathBuf]) -> Result<Vec<PathBuf>, JailError> {
    paths
        .iter()
        .map(|path| path.canonicalize().map_err(JailError::at("allow writing to", path)))
        .collect()
}

fn outermost(paths: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    paths.iter().filter(|path| !paths.iter().any(|other| view::is_below(path, other)))
}

fn is_writable(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| !found.flags().contains(FsFlags::ST_RDONLY))
}

fn taken(mounts: &[JailMount]) -> Result<Vec<(OwnedFd, &PathBuf)>, JailError> {
    let mut taken = Vec::new();
    for wanted in mounts {
        match wanted {
            JailMount::Bind { from, at } => {
                let tree = mount::copy_tree(from).map_err(JailError::at("take", from))?;
                taken.push((tree, at));
            }
            JailMount::Overlay { lower, upper, work, at } => {
                let lock = overlay::lock(upper).map_err(JailError::at("take for itself", upper))?;
                // The init holds it until it dies, and the jail with it.
                let _held = lock.into_raw_fd();
                let tree = overlay::make(lower, upper, work);
                taken.push((tree.map_err(JailError::at("lay a layer over", lower))?, at));
            }
        }
    }
    Ok(taken)
}

/// A directory that is covered, and what is seen in it afterwards.
struct Mask {
    at: PathBuf,
    base: MaskBase,
    through: Vec<(PathBuf, OwnedFd)>,
    links: Vec<(PathBuf, PathBuf)>,
}

enum MaskBase {
    /// An empty file system in memory, with these options.
    Memory(&'static str),
    Tree(OwnedFd),
}

fn masks(plan: &JailPlan, write: &[PathBuf], named: &[PathBuf]) -> Result<Vec<Mask>, JailError> {
    let mut masks = vec![devices(named)?];
    let mut done = BTreeSet::new();
    for dir in ["/run"].into_iter().chain(TEMPORARY) {
        let Ok(dir) = Path::new(dir).canonicalize() else { continue };
        // Who asks for the whole directory, or for more, gets it.
        let is_wanted = |path: &PathBuf| dir.starts_with(path);
        let is_open = write.iter().any(is_wanted) || plan.show.iter().any(is_wanted);
        if is_open || !done.insert(dir.clone()) {
            continue;
        }
        masks.push(if dir == Path::new("/run") {
            services(dir, named)?
        } else {
            temporary(dir, plan.tmp.as_deref(), named)?
        });
    }
    Ok(masks)
}

fn devices(named: &[PathBuf]) -> Result<Mask, JailError> {
    let at = PathBuf::from("/dev");
    let mut places = view::outermost_below(&at, named);
    places.extend(NODES.iter().map(PathBuf::from).filter(|node| node.exists()));
    let links = LINKS.iter().map(|(place, target)| (place.into(), target.into())).collect();
    Ok(Mask { at, base: MaskBase::Memory(PLACES), through: copies(places)?, links })
}

/// The directory of running services: their sockets and what they keep for themselves. What programs
/// read there is the address of the name server and, on some distributions, links to the system.
fn services(at: PathBuf, named: &[PathBuf]) -> Result<Mask, JailError> {
    let mut kept = named.to_vec();
    // Its directory, because the file is replaced when the network changes.
    let names = Path::new("/etc/resolv.conf").canonicalize().ok();
    kept.extend(names.map(|file| match file.parent() {
        Some(dir) if dir != at => dir.to_path_buf(),
        Some(_) | None => file,
    }));
    let mut links = Vec::new();
    for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
        links.extend(fs::read_link(entry.path()).ok().map(|target| (entry.path(), target)));
    }
    let through = copies(view::outermost_below(&at, &kept))?;
    links.retain(|(place, _)| !through.iter().any(|(other, _)| other == place));
    Ok(Mask { at, base: MaskBase::Memory(PLACES), through, links })
}

fn temporary(at: PathBuf, own: Option<&Path>, named: &[PathBuf]) -> Result<Mask, JailError> {
    let base = match own {
        Some(own) => MaskBase::Tree(mount::copy_tree(own).map_err(JailError::at("take", own))?),
        None => MaskBase::Memory("mode=1777"),
    };
    let (mut places, mut links) = (BTreeSet::new(), Vec::new());
    for entry in view::entries_with(&at, named) {
        match fs::read_link(&entry) {
            Ok(target) => links.push((entry, target)),
            Err(_) => drop(places.insert(entry)),
        }
    }
    Ok(Mask { at, base, through: copies(places)?, links })
}

fn copies(places: BTreeSet<PathBuf>) -> Result<Vec<(PathBuf, OwnedFd)>, JailError> {
    let mut copies = Vec::new();
    for place in places.into_iter().filter(|place| place.exists()) {
        let tree = mount::copy_tree(&place).map_err(JailError::at("show", &place))?;
        copies.push((place, tree));
    }
    Ok(copies)
}

impl Mask {
    /// Covers the directory and puts what stays visible into it.
    fn lay(&self) -> Result<(), JailError> {
        let cover = JailError::at("cover", &self.at);
        match &self.base {
            MaskBase::Memory(options) => mount::memory(&self.at, options).map_err(cover)?,
            MaskBase::Tree(tree) => mount::attach(tree, &self.at).map_err(cover)?,
        }
        for (place, tree) in &self.through {
            make_place(place, tree).map_err(JailError::at("make a place for", place))?;
            mount::attach(tree, place).map_err(JailError::at("show", place))?;
        }
        for (place, target) in &self.links {
            match std::os::unix::fs::symlink(target, place) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => done.map_err(JailError::at("link", place))?,
            }
        }
        Ok(())
    }
}

/// Makes the file or directory on which a tree can be mounted. A link that a program left there, in
/// its own temporary directory, must not lead the mount elsewhere.
fn make_place(place: &Path, tree: &OwnedFd) -> io::Result<()> {
    let kind = SFlag::from_bits_truncate(fstat(tree)?.st_mode) & SFlag::S_IFMT;
    let is_dir = kind == SFlag::S_IFDIR;
    if fs::symlink_metadata(place).is_ok_and(|found| found.is_dir() != is_dir || found.is_symlink())
    {
        crate::dir::remove(place)?;
    }
    if is_dir {
        return fs::create_dir_all(place);
    }
    place.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::options().create(true).append(true).open(place).map(|_| ())
}

fn furnish_devices() -> Result<(), JailError> {
    let (terminals, memory) = (Path::new(TERMINALS), Path::new(SHARED_MEMORY));
    fs::create_dir(terminals)
        .and_then(|()| mount::terminals(terminals))
        .map_err(JailError::at("make terminals at", terminals))?;
    if memory.exists() {
        return Ok(());
    }
    fs::create_dir(memory)
        .and_then(|()| mount::memory(memory, "mode=1777"))
        .map_err(JailError::at("make shared memory at", memory))
}

fn bind_to_itself(path: &Path) -> Result<(), JailError> {
    mount::copy_tree(path)
        .and_then(|tree| mount::attach(&tree, path))
        .map_err(JailError::at("allow writing to", path))
}

/// Covers what is to be hidden and returns where that was.
fn hide(paths: &[PathBuf], named: &[PathBuf]) -> Result<Vec<PathBuf>, JailError> {
    let mut hidden = Vec::new();
    for path in paths {
        // What another cover has taken away, or was never there, needs none.
        let Ok(path) = path.canonicalize() else { continue };
        if path.is_dir() {
            let through = copies(view::outermost_below(&path, named))?;
            let base = MaskBase::Memory(PLACES);
            Mask { at: path.clone(), base, through, links: Vec::new() }.lay()?;
        } else {
            cover_by_null(&path).map_err(JailError::at("hide", &path))?;
        }
        hidden.push(path);
    }
    Ok(hidden)
}

fn mask_sockets(
    bound: &BTreeSet<PathBuf>,
    write: &[PathBuf],
    allowed: &[PathBuf],
) -> Result<(), JailError> {
    let allowed = view::both_ways(allowed.iter().cloned());
    for path in bound {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        let is_own = write.iter().any(|dir| path.starts_with(dir));
        if is_socket && !is_own && !allowed.contains(path) {
            unless_gone(path, cover_by_null(path))
                .map_err(JailError::at("cover the socket", path))?;
        }
    }
    Ok(())
}

/// Forgives a failure for want of a path that its owner has removed: nobody can connect to it.
fn unless_gone(path: &Path, covered: io::Result<()>) -> io::Result<()> {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match covered {
        Err(error)
            if is_missing(&error)
                && fs::symlink_metadata(path).is_err_and(|error| is_missing(&error)) =>
        {
            Ok(())
        }
        covered => covered,
    }
}

fn cover_by_null(path: &Path) -> io::Result<()> {
    mount::attach(&mount::copy_tree(Path::new("/dev/null"))?, path)
}

/// Makes the directories that are the jail's own writable and its devices usable again. Returns the
/// directories. For Landlock what is shown in `/tmp` is part of it and may be written; there the
/// read-only mounts are the only fence, and nobody inside can change them.
fn reopen(masks: &[Mask]) -> Result<Vec<PathBuf>, JailError> {
    let mut open = vec![PathBuf::from(SHARED_MEMORY), PathBuf::from(PROCESSES)];
    for mask in masks {
        if TEMPORARY.iter().any(|dir| mask.at == Path::new(dir)) {
            open.push(mask.at.clone());
        }
    }
    for dir in &open {
        mount::change(dir, MountReach::One, 0, READ_ONLY)
            .map_err(JailError::at("allow writing to", dir))?;
    }
    let devices = masks.iter().flat_map(|mask| &mask.through).map(|(place, _)| place.as_path());
    let is_device = |path: &Path| {
        fs::symlink_metadata(path)
            .map(|found| found.file_type())
            .is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
    };
    for node in devices.filter(|node| is_device(node)).chain([Path::new(TERMINALS)]) {
        mount::change(node, MountReach::One, 0, READ_ONLY | NO_DEVICES)
            .map_err(JailError::at("use", node))?;
    }
    Ok(open)
}

/// Makes the process table read-only. Root's own number is that of the machine's root, who owns the
/// settings of the kernel in it.
pub fn seal_processes() -> io::Result<()> {
    mount::change(Path::new(PROCESSES), MountReach::One, READ_ONLY, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_is_gone_needs_no_cover() {
        let dir = tempfile::tempdir().unwrap();
        let failed = |number| Err(io::Error::from_raw_os_error(number));
        assert!(unless_gone(&dir.path().join("gone"), failed(libc::ENOENT)).is_ok());
        assert!(unless_gone(&dir.path().join("gone"), failed(libc::EPERM)).is_err());
        assert!(unless_gone(dir.path(), failed(libc::ENOENT)).is_err());
    }
}
