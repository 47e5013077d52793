//! When a room becomes a seed, when it does not, and how long a seed stays.

use std::fs;
use std::path::Path;
use std::time::Duration;

use autopilot_host::warm::{
    ColdReason, LayerKind, SealRefusal, SealRequest, SeedBounds, WarmError, bound,
};
use nix::mount::{MsFlags, mount};

use crate::world::{KEY, World, paths, put, request};

const FILES: &[(&str, &str)] = &[("Cargo.toml", ""), ("a", "base\n"), (".gitignore", "target\n")];

pub fn refused() {
    let world = World::new(FILES);
    let refusal = |script: &str, after: &dyn Fn(&Path)| {
        let room = world.room(&world.base);
        let ran = world.run(|plan| room.put_into(plan), script);
        assert_eq!(ran.code, Some(0), "{}", ran.out);
        after(&room.seen());
        let refused = room.seal(&request(KEY));
        assert_eq!((world.layers(), world.seeds()), (vec![], vec![]), "{script}");
        match refused.unwrap_err() {
            WarmError::NotSealed(refusal) => refusal,
            error @ (WarmError::Git(_)
            | WarmError::File { .. }
            | WarmError::NotRestored { .. }
            | WarmError::GoCold(_)) => {
                panic!("{script}: {error}")
            }
        }
    };
    let nothing: &dyn Fn(&Path) = &|_| {};
    let changed = |names: &[&str]| SealRefusal::TrackedChanged { paths: paths(names) };
    assert_eq!(refusal("echo x >> a", nothing), changed(&["a"]));
    assert_eq!(refusal("rm Cargo.toml; chmod +x a", nothing), changed(&["Cargo.toml", "a"]));
    let future = SealRefusal::FutureTime { path: "tree/target/x".into() };
    assert_eq!(refusal("mkdir target && touch -d 2099-01-01 target/x", nothing), future);
    let attribute = SealRefusal::LayerAttribute { path: "tree/target/x".into() };
    let plant = "mkdir -p target/x && /usr/bin/python3 -c 'import os; \
                 os.setxattr(\"target/x\", \"user.overlay.opaque\", b\"y\")'";
    assert_eq!(refusal(plant, nothing), attribute);
    // Sockets and pipes are of no use to anybody, and are not sealed.
    let room = world.room(&world.base);
    let script = "mkdir target && mkfifo target/pipe && echo $HOME > ../home/.cache";
    assert_eq!(world.run(|plan| room.put_into(plan), script).code, Some(0));
    let home = [(".gitconfig".into(), b"[user]\n".to_vec())];
    let seed = room
        .seal(&SealRequest { key: KEY, cold: Duration::from_millis(1234), home: &home })
        .unwrap();
    assert_eq!(seed.cold_time(), Duration::from_millis(1234));
    assert_eq!(crate::world::names(&seed.root().join("home")), [".gitconfig"]);
    assert_eq!(crate::world::names(&seed.root().join("tree/target")), [""; 0]);
    // The key is taken: the seed that is there is returned, and the second room is gone.
    let other = world.room(&world.base);
    let again = other.seal(&request(KEY)).unwrap();
    assert_eq!((again.cold_time(), world.layers()), (Duration::from_millis(1234), vec![]));
    assert!(world.store.find("another key").unwrap().is_none());
}

/// Ignored files that every worktree needs are sealed as the user has them.
pub fn copied() {
    let files = [FILES, &[("keep", "")]].concat();
    let world = World::new(&files);
    put(&world.user, "target/.env", "of the user\n");
    let room = crate::world::room_with(&world.store, &world.base, &paths(&["target/.env"]));
    assert_eq!(room.prepared().copied, paths(&["target/.env"]));
    let script = "cat target/.env && echo changed > target/.env && echo x > .env";
    let ran = world.run(|plan| room.put_into(plan), script);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "of the user\n"));
    let seed = room.seal(&request(KEY)).unwrap();
    let (ran, _) =
        world.warm(&seed, LayerKind::Overlay, &world.base, "cat target/.env; test ! -e .env");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "of the user\n"));
}

/// What the setup made is in every gate from nothing, so it is sealed unless a command changed it.
pub fn set_up() {
    let world = World::new(FILES);
    let mut room = world.room(&world.base);
    let setup = "mkdir vendor ../home/.tool && echo 1 | tee vendor/x dev.db > ../home/.tool/x";
    assert_eq!(world.run(|plan| room.put_into(plan), setup).code, Some(0));
    room.after_setup().unwrap();
    let test = "echo 2 > dev.db; echo left > vendor/left; echo left > ../home/.left";
    assert_eq!(world.run(|plan| room.put_into(plan), test).code, Some(0));
    let seed = room.seal(&request(KEY)).unwrap();
    assert_eq!(seed.seal().setup_lost, ["tree/dev.db"]);
    let script = "cat vendor/x ../home/.tool/x; ls -A vendor ../home";
    let (ran, _) = world.warm(&seed, LayerKind::Overlay, &world.base, script);
    assert_eq!(ran.out, "1\n1\n../home:\n.tool\n\nvendor:\nx\n");
}

pub fn full_disk() {
    // So many that their record is larger than what is freed before it is written.
    let many: Vec<String> = (0..2000).map(|number| format!("many/{number}")).collect();
    let mut files: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "")).collect();
    files.extend(FILES);
    let world = World::new(&files);
    // In a namespace of this process alone, so that the mount ends with it.
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let none = None::<&str>;
    if user.is_root() {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    } else {
        let flags = nix::sched::CloneFlags::CLONE_NEWUSER | nix::sched::CloneFlags::CLONE_NEWNS;
        nix::sched::unshare(flags).unwrap();
        fs::write("/proc/self/setgroups", "deny").unwrap();
        fs::write("/proc/self/uid_map", format!("{user} {user} 1")).unwrap();
        fs::write("/proc/self/gid_map", format!("{group} {group} 1")).unwrap();
    }
    mount(Some("tmpfs"), &world.state, Some("tmpfs"), MsFlags::empty(), Some("size=8m")).unwrap();
    let (_, _, store) = crate::world::open(&world.user, &world.state);
    const HOME_BYTES: u64 = 8 * 1024;
    let home = [("settings".into(), vec![b'x'; usize::try_from(HOME_BYTES).unwrap()])];
    // The disk is full when the home is furnished, and when the record is written.
    for (left, at) in [(0, "home/settings"), (HOME_BYTES, "seal.json")] {
        let room = crate::world::room(&store, &world.base);
        put(&room.seen(), "tree/target/built", "x");
        let filler = world.state.join("filler");
        let free = nix::sys::statvfs::statvfs(&world.state).unwrap();
        let bytes = free.blocks_available() * free.fragment_size() - left;
        fs::write(&filler, vec![0; usize::try_from(bytes).unwrap()]).unwrap();
        let error = room.seal(&SealRequest { home: &home, ..request(KEY) }).unwrap_err();
        assert!(error.is_disk_full(), "{error:?}");
        assert!(error.to_string().contains(at), "{error}");
        for dir in ["layers", "seeds"] {
            assert_eq!(crate::world::names(&world.state.join(dir)), [""; 0]);
        }
        fs::remove_file(filler).unwrap();
    }
    crate::world::room(&store, &world.base).seal(&request(KEY)).unwrap();
}

pub fn bounded() {
    let world = World::new(FILES);
    for key in ["one", "two", "three"] {
        let room = world.room(&world.base);
        put(&room.seen().join("tree"), "target/x", &"x".repeat(1000));
        room.seal(&request(key)).unwrap();
        // The clock of files is coarse.
        std::thread::sleep(Duration::from_millis(20));
    }
    let removed = |seeds_max: usize, bytes_max: u64| {
        let removed = bound(&world.state, &SeedBounds { seeds_max, bytes_max }).unwrap();
        removed.into_iter().map(|seed| seed.key).collect::<Vec<_>>()
    };
    assert_eq!(removed(3, 1 << 20), [""; 0]);
    let used = world.store.find("one").unwrap().unwrap();
    assert_eq!(removed(2, 1 << 20), ["two"]);
    // One that is in use stays, whatever the bounds are.
    assert_eq!(removed(0, 0), ["three"]);
    let mut layer = world.layer(&used, LayerKind::Overlay, &world.base);
    drop(used);
    assert_eq!(removed(0, 0), [""; 0]);
    layer.before_command().unwrap();
    drop(layer);
    assert_eq!(removed(2, used_bytes(&world) - 1), ["one"]);
    assert_eq!(world.seeds(), [""; 0]);
}

fn used_bytes(world: &World) -> u64 {
    world.store.find("one").unwrap().unwrap().seal().bytes
}

pub fn clock() {
    let world = World::new(FILES);
    let seed = world.seed("mkdir target");
    drop(seed);
    // As if the seed had been sealed before the clock was set back.
    let dir = world.state.join("seeds").join(&world.seeds()[0]);
    let path = dir.join("seal.json");
    let mut seal: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    seal["newest_ns"] = 4_000_000_000_000_000_000_u64.into();
    fs::write(&path, seal.to_string()).unwrap();
    let seed = world.store.find(KEY).unwrap().unwrap();
    let mut layer = world.layer(&seed, LayerKind::Overlay, &world.base);
    let error = layer.before_command().unwrap_err();
    assert_eq!(error.cold_reason(), Some(&ColdReason::ClockSetBack));
}
