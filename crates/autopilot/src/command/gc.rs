//! `autopilot gc`: frees disk space. Work that no ref holds is rescued before its slot is removed.

use super::ground::{self, Ground};
use super::{Done, answer, place};
use crate::cli::{Gc, Global};
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal;
use autopilot_core::number::size;
use autopilot_engine::place::StatePaths;
use autopilot_engine::{job, kept, workspace};
use autopilot_host::dir;
use autopilot_host::git::salvage::{self, DropRule};
use autopilot_host::git::{OVERSIZE, Slots};
use autopilot_host::warm::{self, SeedBounds};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

const DAY_SECONDS: i64 = 86_400;

/// Something that can be removed, and its size.
#[derive(Serialize)]
struct GcItem {
    #[serde(serialize_with = "as_word")]
    what: What,
    path: Utf8PathBuf,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    AgentSlot,
    JudgeSlot,
    ProofSlot,
    /// The room of a gate whose process died.
    Layer,
    /// What the base built, from which gates start.
    Seed,
    Scratch,
    Session,
    Cache,
    /// Files that were too large to be captured.
    Oversize,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            What::AgentSlot | What::JudgeSlot => "slot",
            What::ProofSlot => "clean checkout",
            What::Layer => "gate",
            What::Seed => "build of the base",
            What::Scratch => "scratch",
            What::Session => "session",
            What::Cache => "cache",
            What::Oversize => "oversize files",
        }
    }

    fn is_slot(self) -> bool {
        matches!(self, What::AgentSlot | What::JudgeSlot | What::ProofSlot)
    }

    /// The number of a slot in its pool: 3 for `slots/s3`, `slots/j3` and `proof/p3`.
    fn number(self, path: &Utf8Path) -> Option<usize> {
        let letter = match self {
            What::AgentSlot => 's',
            What::JudgeSlot => 'j',
            What::ProofSlot => 'p',
            What::Layer
            | What::Seed
            | What::Scratch
            | What::Session
            | What::Cache
            | What::Oversize => return None,
        };
        path.file_name()?.strip_prefix(letter)?.parse().ok()
    }
}

fn as_word<S: Serializer>(what: &What, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(what.word())
}

/// Removes what is not needed, or lists it with `--dry-run`.
pub fn gc(global: &Global, args: &Gc) -> Done {
    let (place, has_journal) = place(global)?;
    if place.state.as_str().is_empty() || !place.state.join("hub.git").is_dir() {
        let nothing = GcReport { dry_run: args.dry_run, ..GcReport::default() };
        let text = "nothing to remove: no run was started in this repository yet";
        return answer(global, nothing, |_| text.to_owned());
    }
    let ground = ground::open(&place)?;
    let (unfinished, open) = match has_journal {
        true => {
            let reader = workspace::reader(&place)?;
            let unfinished = workspace::unfinished(&reader)?.map(|(run, _)| run.id);
            (unfinished, workspace::not_ended(&reader)?)
        }
        false => (None, BTreeSet::new()),
    };
    let mut items = items(&place, args);
    let sessions = kept::due(&place, &open, SystemTime::now());
    if unfinished.is_some() {
        // The run's next attempt continues in the slot of the interrupted one.
        items.retain(|item| !matches!(item.what, What::AgentSlot | What::JudgeSlot));
    }
    let session = |path: &Utf8PathBuf| GcItem {
        what: What::Session,
        bytes: bytes_below(path),
        path: path.clone(),
    };
    items.extend(sessions.iter().map(session));
    let mut rescued = Vec::new();
    if !args.dry_run {
        // The session of a killed process is still in the home of its agent.
        job::keep_left(&place, &mut terminal::note);
        kept::remember_removed(&place, &sessions)
            .or_failed("cannot record which sessions are removed")?;
        for item in &items {
            rescued.extend(remove(&ground, item)?);
        }
    }
    let dropped = match args.salvage_older_than {
        Some(days) => old_salvage(&ground, days, args.dry_run)?,
        None => Vec::new(),
    };
    let bytes = items.iter().map(|item| item.bytes).sum();
    let report = GcReport { dry_run: args.dry_run, items, rescued, dropped, unfinished, bytes };
    answer(global, report, GcReport::text)
}

fn items(place: &StatePaths, args: &Gc) -> Vec<GcItem> {
    let mut folders = vec![
        (What::AgentSlot, place.state.join("slots")),
        (What::JudgeSlot, place.state.join("slots")),
        (What::ProofSlot, place.state.join("proof")),
        (What::Layer, place.state.join(warm::LAYERS)),
        (What::Scratch, place.state.join("tmp")),
    ];
    if args.oversize {
        folders.push((What::Oversize, place.state.join(OVERSIZE)));
    }
    if args.caches {
        folders.push((What::Seed, place.state.join(warm::SEEDS)));
        folders.push((What::Cache, place.caches()));
    }
    let mut items = Vec::new();
    for (what, folder) in folders {
        let Ok(entries) = folder.read_dir_utf8() else { continue };
        let mut paths: Vec<Utf8PathBuf> =
            entries.flatten().map(|entry| entry.path().to_owned()).collect();
        // Files of other programs stay.
        paths.retain(|path| !what.is_slot() || what.number(path).is_some());
        // A lock goes with the directory beside it.
        paths.retain(|path| !matches!(what, What::Layer | What::Seed) || path.is_dir());
        paths.sort();
        items.extend(paths.into_iter().map(|path| GcItem {
            what,
            bytes: bytes_below(&path),
            path,
        }));
    }
    items
}

/// Removes an item. Returns the salvage ref that now holds its work, if it had any.
fn remove(ground: &Ground, item: &GcItem) -> Result<Option<String>, CommandFailure> {
    let slots = Slots::new(&ground.hub, &ground.repo);
    let now = autopilot_engine::clock::now().0 / 1000;
    match (item.what, item.what.number(&item.path)) {
        (What::AgentSlot, Some(n)) => Ok(slots.agent(n).remove(now)?),
        (What::JudgeSlot, Some(n)) => Ok(slots.judge(n).remove(now)?),
        (What::ProofSlot, Some(n)) => Ok(slots.proof(n).remove(now)?),
        (What::AgentSlot | What::JudgeSlot | What::ProofSlot, None) => Ok(None),
        // Each takes all of them that nobody uses.
        (What::Layer, _) => {
            let swept = warm::sweep(ground.hub.state()).map(|_| None);
            swept.or_failed(format!("cannot remove `{}`", item.path))
        }
        (What::Seed, _) => {
            let none = SeedBounds { seeds_max: 0, bytes_max: 0 };
            let removed = warm::bound(ground.hub.state(), &none);
            let removed = removed.and_then(|_| warm::sweep(ground.hub.state())).map(|_| None);
            removed.or_failed(format!("cannot remove `{}`", item.path))
        }
        (What::Scratch | What::Session | What::Cache | What::Oversize, _) => {
            let path = &item.path;
            let removed = dir::remove(path.as_std_path()).map(|()| None);
            removed.or_failed(format!("cannot remove `{path}`"))
        }
    }
}

fn old_salvage(ground: &Ground, days: u32, dry_run: bool) -> Result<Vec<String>, CommandFailure> {
    let before = autopilot_engine::clock::now().0 / 1000 - i64::from(days) * DAY_SECONDS;
    let found = if dry_run {
        let mut all = salvage::list(&ground.hub)?;
        all.retain(|salvaged| salvaged.at < before);
        all
    } else {
        salvage::drop_salvaged(&ground.hub, DropRule::OlderThan(before))?
    };
    Ok(found.into_iter().map(|s| format!("{}/{}", s.task, s.attempt)).collect())
}

fn bytes_below(root: &Utf8Path) -> u64 {
    let mut bytes = 0;
    let mut pending = vec![root.as_std_path().to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        bytes += meta.blocks() * 512;
        if meta.is_dir() {
            pending.extend(path.read_dir().into_iter().flatten().flatten().map(|e| e.path()));
        }
    }
    bytes
}

#[derive(Default, Serialize)]
struct GcReport {
    dry_run: bool,
    #[serde(rename = "removed")]
    items: Vec<GcItem>,
    rescued: Vec<String>,
    #[serde(rename = "salvage_dropped")]
    dropped: Vec<String>,
    #[serde(rename = "slots_kept_for")]
    unfinished: Option<String>,
    bytes: u64,
}

impl GcReport {
    fn text(&self) -> String {
        let verb = if self.dry_run { "would remove" } else { "removed" };
        let mut lines = Vec::new();
        for item in &self.items {
            let (what, size) = (item.what.word(), size(item.bytes));
            lines.push(format!("{verb} {what} {} ({size})", item.path));
        }
        lines.extend(self.rescued.iter().map(|name| format!("rescued {name} first")));
        lines.extend(self.dropped.iter().map(|name| format!("{verb} salvaged work {name}")));
        if let Some(run) = &self.unfinished {
            lines.push(format!("kept the slots and sessions of run {run}, which is not over"));
        }
        lines.push(format!("{verb} {} in total", size(self.bytes)));
        lines.join("\n")
    }
}

/// The bytes that the state of a repository takes on disk.
pub fn used(place: &StatePaths) -> u64 {
    bytes_below(&place.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_that_are_named_as_slots_are_slots() {
        let number = |what: What, path: &str| what.number(Utf8Path::new(path));
        assert_eq!(number(What::AgentSlot, "/x/slots/s12"), Some(12));
        assert_eq!(number(What::JudgeSlot, "/x/slots/j3"), Some(3));
        assert_eq!(number(What::JudgeSlot, "/x/slots/s3"), None);
        assert_eq!(number(What::ProofSlot, "/x/proof/p0"), Some(0));
        assert_eq!(number(What::AgentSlot, "/x/slots/mine"), None);
        assert_eq!(number(What::ProofSlot, "/x/proof/s1"), None);
    }
}
