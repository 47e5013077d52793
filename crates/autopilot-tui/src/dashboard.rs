//! A run's own dashboard: on a thread of its own behind a bounded channel, so that a terminal that
//! takes nothing holds up no run. When it falls behind it takes up the whole state again.

use crate::screen::Screen;
use crate::show::{self, Feed, Hands, News};
use crate::tty;
use autopilot_core::event::Record;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_engine::shell::Sight;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Messages on their way to the screen.
pub const MESSAGES_MAX: usize = 1024;
/// Waited for the screen to give the terminal back; one that is stuck is left behind.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

enum Message {
    /// A record and everything that holds after it.
    State(Box<(Record, State)>),
    Record(Box<Record>),
    Sight {
        task: TaskId,
        step: Step,
        sight: Sight,
        at: Time,
    },
    Notice {
        text: String,
        at: Time,
    },
}

pub struct Dashboard {
    sender: Sender,
    thread: Option<(JoinHandle<()>, Receiver<()>)>,
    is_gone: Arc<AtomicBool>,
}

/// The run's end of the channel: tells what fits, and the whole state after something did not.
struct Sender {
    channel: Option<SyncSender<Message>>,
    is_behind: bool,
}

impl Sender {
    fn record(&mut self, record: &Record, state: &State) {
        let message = if self.is_behind {
            Message::State(Box::new((record.clone(), state.clone())))
        } else {
            Message::Record(Box::new(record.clone()))
        };
        self.is_behind = !self.send(message);
    }

    fn send(&self, message: Message) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.try_send(message).is_ok())
    }
}

impl Dashboard {
    /// Takes the terminal over. The first record tells the whole state.
    pub fn start(mut screen: Screen, mut hands: Box<dyn Hands + Send>) -> io::Result<Dashboard> {
        let (channel, messages) = mpsc::sync_channel(MESSAGES_MAX);
        let (ended, end) = mpsc::channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&is_gone);
        let thread = std::thread::Builder::new().name("dashboard".into()).spawn(move || {
            let mut feed = Messages(messages);
            let shown = show::show(&mut screen, &mut feed, hands.as_mut());
            gone.store(shown.is_err(), Ordering::SeqCst);
            let _nobody_waits = ended.send(());
        })?;
        let sender = Sender { channel: Some(channel), is_behind: true };
        Ok(Dashboard { sender, thread: Some((thread, end)), is_gone })
    }

    /// The terminal is lost to it; whoever has more to say must say it otherwise.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    pub fn record(&mut self, record: &Record, state: &State) {
        self.sender.record(record, state);
    }

    /// Left out when there is no room: the log has it.
    pub fn sight(&mut self, task: TaskId, step: Step, sight: &Sight, at: Time) {
        let _no_room = self.sender.send(Message::Sight { task, step, sight: sight.clone(), at });
    }

    pub fn notice(&mut self, text: &str, at: Time) {
        let _no_room = self.sender.send(Message::Notice { text: text.to_owned(), at });
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.sender.channel = None;
        let Some((thread, end)) = self.thread.take() else { return };
        // A thread that panicked has dropped its end and given the terminal back by unwinding.
        match end.recv_timeout(END_WAIT_MAX) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
                let _panicked = thread.join();
            }
            Err(mpsc::RecvTimeoutError::Timeout) => tty::restore_modes(),
        }
    }
}

struct Messages(Receiver<Message>);

impl Feed for Messages {
    fn take(&mut self, screen: &mut Screen) -> News {
        let mut news = News::None;
        for _ in 0..MESSAGES_MAX {
            match self.0.try_recv() {
                Ok(message) => {
                    news = News::Some;
                    tell(screen, message);
                }
                Err(TryRecvError::Empty) => return news,
                Err(TryRecvError::Disconnected) => return News::End,
            }
        }
        news
    }
}

fn tell(screen: &mut Screen, message: Message) {
    match message {
        Message::State(both) => {
            let (record, state) = *both;
            screen.take_up(state);
            screen.tell(&record);
        }
        Message::Record(record) => screen.record(&record),
        Message::Sight { task, step, sight, at } => screen.sight(task, step, &sight, at),
        Message::Notice { text, at } => screen.notice(&text, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, manner};
    use crate::screen::Seat;

    #[test]
    fn a_screen_that_takes_nothing_costs_neither_waiting_nor_memory_and_catches_up_whole() {
        let mut sample = Sample::planned(&[("a", &[]), ("b", &[])]);
        let (channel, messages) = mpsc::sync_channel(MESSAGES_MAX);
        let mut sender = Sender { channel: Some(channel), is_behind: true };
        for _ in 0..MESSAGES_MAX + 50 {
            sample.happens(vec![autopilot_core::event::Event::TimePassed]);
            let record = sample.records.last().unwrap();
            sender.record(record, sample.state());
        }
        assert!(sender.is_behind);
        let mut screen = Screen::new(Seat::Controller, manner());
        let mut feed = Messages(messages);
        assert_eq!(feed.take(&mut screen), News::Some);
        assert!(screen.state.seq < sample.state().seq, "some did not fit");
        sample.start(&["a"], Step::Build);
        sender.record(sample.records.last().unwrap(), sample.state());
        assert_eq!(feed.take(&mut screen), News::Some);
        assert_eq!(&screen.state, sample.state());
        assert_eq!(feed.take(&mut screen), News::None);
        sender.channel = None;
        assert_eq!(feed.take(&mut screen), News::End);
    }
}
