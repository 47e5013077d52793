//! Tells a torn tail of the write-ahead log from damage in its middle.
//!
//! SQLite reads the log up to the first frame whose checksum fails and forgets the rest without a
//! word. For a torn tail that is right: the commit was never acknowledged. But when whole frames of
//! a *later* transaction follow, the earlier one had been fsynced, and forgetting it would lose
//! acknowledged records. Each frame's checksum continues from the checksum of the frame before it,
//! which is stored in that frame's header, so frames behind the damage can still be recognised.
//! Format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::Error;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;
/// The page size SQLite gives a new file; used only when the log's own header cannot be believed.
const PAGE_BYTES_DEFAULT: usize = 4096;

/// Says what is wrong if acknowledged commits lie behind a damaged frame of `path`'s log.
///
/// A live writer may be adding frames, or starting the log over, while we read; both can look like
/// damage. So damage counts only if the same place is bad twice under one and the same header,
/// which every start writes anew before its frames.
pub(super) fn damage(path: &Utf8Path) -> Result<Option<String>, Error> {
    let log = Utf8PathBuf::from(format!("{path}-wal"));
    let fail = |source| Error::File { operation: "read", path: log.clone(), source };
    let look = || -> std::io::Result<Option<WalFinding>> {
        let Some(found) = scan(&log)? else { return Ok(None) };
        let again = scan(&log)?.filter(|again| *again == found);
        let header = open(&log)?.map(|mut log| read_header(&mut log)).transpose()?.flatten();
        Ok(again.filter(|found| Some(found.header) == header))
    };
    let behind = "the commits after it would be lost";
    Ok(look().map_err(fail)?.map(|found| match found.first_bad {
        0 => format!("the header of its write-ahead log is damaged; {behind}"),
        nth => format!("frame {nth} of its write-ahead log is damaged; {behind}"),
    }))
}

#[derive(PartialEq, Eq)]
struct WalFinding {
    header: [u8; HEADER_BYTES],
    /// Frames count from 1; 0 stands for the header.
    first_bad: u64,
}

fn scan(log: &Utf8Path) -> std::io::Result<Option<WalFinding>> {
    let Some(mut log) = open(log)? else { return Ok(None) };
    let Some(header) = read_header(&mut log)? else { return Ok(None) };
    let mut chain = Chain::new(&header);
    let mut frame = vec![0; FRAME_HEADER_BYTES + chain.page_bytes];
    while fill(&mut log, &mut frame)? {
        if let Some(first_bad) = chain.add(&frame) {
            return Ok(Some(WalFinding { header, first_bad }));
        }
    }
    Ok(None)
}

fn open(log: &Utf8Path) -> std::io::Result<Option<BufReader<File>>> {
    match File::open(log) {
        Ok(file) => Ok(Some(BufReader::with_capacity(1 << 16, file))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_header(log: &mut impl Read) -> std::io::Result<Option<[u8; HEADER_BYTES]>> {
    let mut header = [0; HEADER_BYTES];
    Ok(fill(log, &mut header)?.then_some(header))
}

type Sum = (u32, u32);

/// The frames read so far, as links of a chain of checksums.
struct Chain {
    big_endian: bool,
    page_bytes: usize,
    /// The salt of every frame; `None` until the first frame tells it, when the header is damaged.
    salt: Option<[u8; 8]>,
    /// The checksum stored with the frame before, and the checksum its bytes really have.
    stored: Sum,
    computed: Sum,
    frames: u64,
    /// The first place that is wrong; 0 stands for the header.
    first_bad: Option<u64>,
    commit_behind_damage: bool,
}

impl Chain {
    fn new(header: &[u8; HEADER_BYTES]) -> Self {
        let magic = word(header, 0);
        let big_endian = magic & 1 == 1;
        let computed = checksum(big_endian, (0, 0), &header[..24]);
        let stored = (word(header, 24), word(header, 28));
        let page_bytes = usize::try_from(word(header, 8)).unwrap_or(0);
        let sound = magic & !1 == MAGIC
            && computed == stored
            && page_bytes.is_power_of_two()
            && (512..=65536).contains(&page_bytes);
        let mut salt = [0; 8];
        salt.copy_from_slice(&header[16..24]);
        Self {
            big_endian: if sound { big_endian } else { cfg!(target_endian = "big") },
            page_bytes: if sound { page_bytes } else { PAGE_BYTES_DEFAULT },
            salt: sound.then_some(salt),
            stored,
            computed: stored,
            frames: 0,
            first_bad: if sound { None } else { Some(0) },
            commit_behind_damage: false,
        }
    }

    /// Returns the first bad place once a whole frame of a later transaction follows it.
    fn add(&mut self, frame: &[u8]) -> Option<u64> {
        self.frames += 1;
        let stored = (word(frame, 16), word(frame, 20));
        let from_stored = self.sum_from(self.stored, frame);
        let from_computed = self.sum_from(self.computed, frame);
        let salt_holds = self.salt.is_none_or(|salt| frame[8..16] == salt);
        let linked = salt_holds && (from_stored == stored || from_computed == stored);
        let is_commit = word(frame, 4) != 0;
        (self.stored, self.computed) = (stored, from_stored);
        if linked {
            if self.commit_behind_damage {
                return self.first_bad;
            }
            if self.salt.is_none() {
                self.salt = frame[8..16].try_into().ok();
            }
            self.commit_behind_damage = self.first_bad.is_some() && is_commit;
        } else if self.first_bad.is_none() {
            self.first_bad = Some(self.frames);
            self.commit_behind_damage = salt_holds && is_commit;
        }
        None
    }

    fn sum_from(&self, seed: Sum, frame: &[u8]) -> Sum {
        let sum = checksum(self.big_endian, seed, &frame[..8]);
        checksum(self.big_endian, sum, &frame[FRAME_HEADER_BYTES..])
    }
}

fn checksum(big_endian: bool, seed: Sum, bytes: &[u8]) -> Sum {
    let read = |four: &[u8]| {
        let word = word(four, 0);
        if big_endian { word } else { word.swap_bytes() }
    };
    bytes.chunks_exact(8).fold(seed, |(a, b), pair| {
        let a = a.wrapping_add(read(&pair[..4])).wrapping_add(b);
        (a, b.wrapping_add(read(&pair[4..])).wrapping_add(a))
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads until the buffer is full. Returns false when less than a whole buffer is left.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
