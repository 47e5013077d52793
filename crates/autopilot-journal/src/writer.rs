//! The writer thread: it owns the journal, drains its queue and commits all it found as one
//! transaction.
//!
//! Order is kept: an entry is durable no later than the entries submitted after it, so a blob
//! submitted before the record that names it is there when the record is. After one failed commit
//! no more entries are taken: what a failed fsync left on the disk is known only by reading it
//! again.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crate::entry::JournalEntry;
use crate::error::Error;
use crate::journal::Journal;

/// A notice from the writer thread. The closure that receives it runs on that thread: meanwhile the
/// queue fills and the next group grows.
#[derive(Debug)]
pub enum WriterNotice {
    /// Records of this run up to `seq` are on the disk, with all that was submitted before them.
    Durable { run: String, seq: u64 },
    /// A commit has failed, which is reported once. Whether its entries are on the disk is unknown
    /// until the journal is opened again.
    Failed { error: Arc<Error> },
}

/// The owner of the writer thread. Dropping it closes it without reporting the result.
pub struct Writer {
    appender: Appender,
    thread: Option<JoinHandle<()>>,
}

/// A handle by which one producer submits entries.
#[derive(Clone)]
pub struct Appender {
    queue: SyncSender<WriterMessage>,
    failure: Arc<OnceLock<Arc<Error>>>,
}

enum WriterMessage {
    Entry(JournalEntry),
    Now(Vec<JournalEntry>, SyncSender<Result<(), Error>>),
    Close,
}

impl Writer {
    /// Starts the thread. `queue_max` bounds both the queue and the number of messages in one
    /// transaction.
    pub fn start(
        journal: Box<dyn Journal + Send>,
        queue_max: usize,
        notify: Box<dyn FnMut(WriterNotice) + Send>,
    ) -> Result<Self, Error> {
        let queue_max = queue_max.max(1);
        let (sender, receiver) = sync_channel(queue_max);
        let failure = Arc::new(OnceLock::new());
        let (failed, group_max) = (Arc::clone(&failure), queue_max);
        let writer = WriterThread { journal, notify, failure: failed, group_max };
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || writer.serve(&receiver))
            .map_err(|source| Error::WriterStart { source })?;
        Ok(Self { appender: Appender { queue: sender, failure }, thread: Some(thread) })
    }

    /// Returns a handle for one more producer.
    pub fn appender(&self) -> Appender {
        self.appender.clone()
    }

    /// Commits the entries submitted before, then ends the thread. Returns an error if a commit had
    /// failed.
    pub fn close(mut self) -> Result<(), Error> {
        self.join()?;
        self.appender.check_open()
    }

    fn join(&mut self) -> Result<(), Error> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // A send fails only if the thread is already gone; joining it then tells why.
        let _gone = self.appender.queue.send(WriterMessage::Close);
        thread.join().map_err(|_panic| Error::WriterDied)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _said_by_close = self.join();
    }
}

impl Appender {
    /// Queues an entry and waits while the queue is full. `Ok` means queued, not durable.
    pub fn submit(&self, entry: JournalEntry) -> Result<(), Error> {
        self.check(&entry)?;
        self.queue.send(WriterMessage::Entry(entry)).map_err(|_gone| Error::Closed)
    }

    /// Commits the entries and returns when they, and all submitted before them, are durable.
    pub fn append_now(&self, entries: Vec<JournalEntry>) -> Result<(), Error> {
        entries.iter().try_for_each(|entry| self.check(entry))?;
        let (answer, answered) = sync_channel(1);
        self.queue.send(WriterMessage::Now(entries, answer)).map_err(|_gone| Error::Closed)?;
        answered.recv().unwrap_or(Err(Error::Closed))
    }

    fn check(&self, entry: &JournalEntry) -> Result<(), Error> {
        self.check_open()?;
        entry.check_size()
    }

    fn check_open(&self) -> Result<(), Error> {
        match self.failure.get() {
            None => Ok(()),
            Some(error) => Err(Error::Refused { source: Arc::clone(error) }),
        }
    }
}

/// The part of the writer that runs on its thread.
struct WriterThread {
    journal: Box<dyn Journal + Send>,
    notify: Box<dyn FnMut(WriterNotice) + Send>,
    failure: Arc<OnceLock<Arc<Error>>>,
    group_max: usize,
}

/// The messages that are committed as one transaction.
#[derive(Default)]
struct CommitGroup {
    entries: Vec<JournalEntry>,
    waiting: Vec<SyncSender<Result<(), Error>>>,
    messages: usize,
    /// Set by the message that closes the writer.
    last: bool,
}

impl WriterThread {
    fn serve(mut self, queue: &Receiver<WriterMessage>) {
        while let Ok(first) = queue.recv() {
            let mut group = CommitGroup::default();
            group.add(first);
            while !group.last && group.messages < self.group_max {
                let Ok(message) = queue.try_recv() else { break };
                group.add(message);
            }
            let last = group.last;
            self.settle(group);
            if last {
                return;
            }
        }
    }

    fn settle(&mut self, group: CommitGroup) {
        if !group.entries.is_empty() && self.failure.get().is_none() {
            match self.journal.commit(&group.entries) {
                Ok(()) => self.tell_durable(&group.entries),
                Err(error) => self.fail(error),
            }
        }
        for waiting in group.waiting {
            let answer = match self.failure.get() {
                None => Ok(()),
                Some(error) => Err(Error::Refused { source: Arc::clone(error) }),
            };
            // Whoever asked may have gone; nobody else needs the answer.
            let _gone = waiting.send(answer);
        }
    }

    fn tell_durable(&mut self, entries: &[JournalEntry]) {
        let mut reached: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in entries {
            if let JournalEntry::Record(record) = entry {
                reached.insert(&record.run, record.seq);
            }
        }
        for (run, seq) in reached {
            (self.notify)(WriterNotice::Durable { run: run.to_owned(), seq });
        }
    }

    fn fail(&mut self, error: Error) {
        let error = Arc::new(error);
        // The failure is set before the notice, so whoever receives the notice finds the writer
        // already refusing.
        if self.failure.set(Arc::clone(&error)).is_ok() {
            (self.notify)(WriterNotice::Failed { error });
        }
    }
}

impl CommitGroup {
    fn add(&mut self, message: WriterMessage) {
        self.messages += 1;
        match message {
            WriterMessage::Entry(entry) => self.entries.push(entry),
            WriterMessage::Now(entries, waiting) => {
                self.entries.extend(entries);
                self.waiting.push(waiting);
            }
            WriterMessage::Close => self.last = true,
        }
    }
}
