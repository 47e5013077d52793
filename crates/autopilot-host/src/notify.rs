//! Notifying a person that a run has ended. Every way may fail, and none of them is worth a run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::escape;
use crate::exec::{self, Exit, Launch, ProcessStdin, SpawnError, Supervisor};

/// How long a notification may take.
const NOTIFY_TIME_MAX: Duration = Duration::from_secs(15);

const GRACE: Duration = Duration::from_secs(1);

/// How much of a failed command's output is repeated.
const TAIL_BYTES_MAX: usize = 500;

/// The content of a notification. The texts may come from an agent.
#[derive(Debug, Clone, Default)]
pub struct NotifyMessage {
    /// The headline.
    pub title: String,
    /// The text below the headline.
    pub text: String,
    /// The run as JSON, sent to a webhook and, on stdin, to a command.
    pub json: String,
}

/// A way to notify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyWay {
    /// `notify-send` or `osascript`, whichever there is.
    Desktop,
    /// The words of a command, which is run without a shell.
    Command(Vec<OsString>),
    /// An address that takes the JSON by POST.
    Webhook(String),
}

/// The surroundings in which a notification is started.
#[derive(Debug, Clone)]
pub struct NotifyPlace {
    /// The directory in which programs start.
    pub cwd: PathBuf,
    /// The whole environment of the programs; its PATH finds them.
    pub env: BTreeMap<OsString, OsString>,
    /// The supervisor of the programs.
    pub supervisor: Supervisor,
    /// How long a notification may take.
    pub timeout: Duration,
}

impl NotifyPlace {
    /// Makes surroundings with our own executable as supervisor and the usual timeout.
    pub fn new(cwd: PathBuf, env: BTreeMap<OsString, OsString>) -> NotifyPlace {
        NotifyPlace { cwd, env, supervisor: Supervisor::default(), timeout: NOTIFY_TIME_MAX }
    }
}

/// The reason why a notification failed.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// The program for this way is not on PATH.
    #[error("cannot notify: {programs} is not installed")]
    NoProgram { programs: &'static str },
    /// The configured command has no words.
    #[error("cannot notify: the command is empty")]
    Empty,
    /// The webhook is not an address of HTTP.
    #[error("cannot notify: `{address}` is not an http or https address")]
    Address { address: String },
    /// The program could not be started.
    #[error("cannot notify with `{}`", program.display())]
    Start { program: OsString, source: SpawnError },
    /// The program took too long and was ended.
    #[error("cannot notify with `{}`: it took longer than {} s", program.display(), timeout.as_secs())]
    Late { program: OsString, timeout: Duration },
    /// The program failed.
    #[error("cannot notify with `{}`: {words}", program.display())]
    Failed { program: OsString, words: String },
}

/// Sends a notification and waits until it is sent.
pub async fn notify(
    way: &NotifyWay,
    message: &NotifyMessage,
    place: &NotifyPlace,
) -> Result<(), NotifyError> {
    let (program, args, stdin) = match way {
        NotifyWay::Desktop => desktop(message, place)?,
        NotifyWay::Command(words) => {
            let (program, args) = words.split_first().ok_or(NotifyError::Empty)?;
            (program.clone(), args.to_vec(), message.json.clone().into_bytes())
        }
        NotifyWay::Webhook(address) => webhook(address, message, place)?,
    };
    let mut launch = Launch::new(program.clone(), place.cwd.clone());
    launch.args = args;
    launch.env = place.env.clone();
    launch.stdin = ProcessStdin::Bytes(stdin);
    launch.supervisor = place.supervisor.clone();
    let start = |source| NotifyError::Start { program: program.clone(), source };
    let (control, child) = exec::spawn(launch).await.map_err(start)?;
    let end = child.wait();
    tokio::pin!(end);
    let Ok(exit) = tokio::time::timeout(place.timeout, &mut end).await else {
        control.terminate(GRACE);
        end.await;
        return Err(NotifyError::Late { program, timeout: place.timeout });
    };
    if exit.is_zero() {
        return Ok(());
    }
    Err(NotifyError::Failed { words: words(&exit), program })
}

type Prepared = (OsString, Vec<OsString>, Vec<u8>);

fn desktop(message: &NotifyMessage, place: &NotifyPlace) -> Result<Prepared, NotifyError> {
    let title = escape::one_line(&message.title).into_owned();
    let text = escape::plain(&message.text);
    if find("notify-send", place).is_some() {
        // After `--` no text is taken for an option.
        let args = ["--app-name=autopilot".into(), "--".into(), title, markup(&text)];
        return Ok(("notify-send".into(), args.map(OsString::from).to_vec(), Vec::new()));
    }
    if find("osascript", place).is_some() {
        // The texts are arguments of the script, never part of its source.
        let script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        let args = ["-e".into(), script.into(), title, text];
        return Ok(("osascript".into(), args.map(OsString::from).to_vec(), Vec::new()));
    }
    Err(NotifyError::NoProgram { programs: "`notify-send` (or `osascript`)" })
}

/// Escapes the body of a desktop notification, which may hold markup; ours never does.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn webhook(
    address: &str,
    message: &NotifyMessage,
    place: &NotifyPlace,
) -> Result<Prepared, NotifyError> {
    let known = address.starts_with("https://") || address.starts_with("http://");
    if !known || address.contains(|character: char| character.is_control() || character == '"') {
        return Err(NotifyError::Address { address: escape::one_line(address).into_owned() });
    }
    if find("curl", place).is_none() {
        return Err(NotifyError::NoProgram { programs: "`curl`" });
    }
    // The address may hold a secret, so it goes by stdin and not where every user can read it.
    let json = serde_json::Value::from(message.json.as_str()).to_string();
    let config = format!(
        "url = \"{}\"\ndata-raw = {json}\nheader = \"Content-Type: application/json\"\n",
        address.replace('\\', "\\\\")
    );
    let seconds = place.timeout.as_secs().max(1).to_string();
    let args = [
        "--disable",
        "--silent",
        "--show-error",
        "--fail",
        "--proto",
        "=http,https",
        "--max-time",
        &seconds,
        "--output",
        "/dev/null",
        "--config",
        "-",
    ];
    Ok(("curl".into(), args.map(OsString::from).to_vec(), config.into_bytes()))
}

fn find(program: &str, place: &NotifyPlace) -> Option<PathBuf> {
    let path = place.env.get(OsStr::new("PATH"))?;
    exec::find(OsStr::new(program), path, Path::new("/"))
}

fn words(exit: &Exit) -> String {
    let end = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::from("its exit status is unknown"),
    };
    let said = exit.output.stderr.tail(3, TAIL_BYTES_MAX);
    if said.is_empty() { end } else { format!("{end}, {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    fn place() -> NotifyPlace {
        let env = BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap())]);
        let supervisor = crate::exec::tests::supervisor();
        NotifyPlace { supervisor, ..NotifyPlace::new("/".into(), env) }
    }

    fn message() -> NotifyMessage {
        NotifyMessage {
            title: "done".into(),
            text: "3 tasks <b>".into(),
            json: r#"{"text":"it's \"done\" \\ é\n"}"#.into(),
        }
    }

    fn command(words: &[&str]) -> NotifyWay {
        NotifyWay::Command(words.iter().map(OsString::from).collect())
    }

    #[tokio::test]
    async fn a_command_gets_the_message_on_stdin() {
        let dir = tempfile::tempdir().unwrap();
        let place = NotifyPlace { cwd: dir.path().into(), ..place() };
        let way = command(&["sh", "-c", "cat > got"]);
        notify(&way, &message(), &place).await.unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("got")).unwrap(), message().json);
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told() {
        let failing = command(&["sh", "-c", "echo no network >&2; exit 6"]);
        let error = notify(&failing, &message(), &place()).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot notify with `sh`: exit code 6, no network");
        let error = notify(&command(&["/no/such"]), &message(), &place()).await.unwrap_err();
        assert!(matches!(error, NotifyError::Start { .. }));
        let error = notify(&command(&[]), &message(), &place()).await.unwrap_err();
        assert!(matches!(error, NotifyError::Empty));
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended() {
        let place = NotifyPlace { timeout: Duration::from_millis(100), ..place() };
        let error = notify(&command(&["sleep", "100"]), &message(), &place).await.unwrap_err();
        assert!(matches!(error, NotifyError::Late { .. }));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_webhook_gets_exactly_the_json() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hook?key=a%20b", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut reader = BufReader::new(listener.accept().unwrap().0);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1).unwrap();
            let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            (head, String::from_utf8(body).unwrap())
        });
        notify(&NotifyWay::Webhook(address), &message(), &place()).await.unwrap();
        let (head, body) = server.join().unwrap();
        assert!(head.starts_with("POST /hook?key=a%20b HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
        assert_eq!(body, message().json);
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_refused() {
        for address in ["ftp://x", "file:///etc/passwd", "http://x\"\nurl = \"y", "-o /etc/x"] {
            let error = notify(&NotifyWay::Webhook(address.into()), &message(), &place()).await;
            assert!(matches!(error, Err(NotifyError::Address { .. })), "{address}");
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nobody = NotifyWay::Webhook(format!("http://127.0.0.1:{port}/"));
        let error = notify(&nobody, &message(), &place()).await.unwrap_err();
        assert!(matches!(error, NotifyError::Failed { .. }), "{error}");
    }

    #[test]
    fn the_desktop_program_is_the_one_that_exists() {
        let dir = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("PATH".into(), dir.path().into())]);
        let place = NotifyPlace::new("/".into(), env);
        assert!(matches!(desktop(&message(), &place), Err(NotifyError::NoProgram { .. })));
        for name in ["osascript", "notify-send"] {
            let tool = dir.path().join(name);
            std::fs::write(&tool, "").unwrap();
            std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            let (program, args, _) = desktop(&message(), &place).unwrap();
            assert_eq!(program, name);
            assert!(args.iter().any(|arg| arg.to_str().unwrap().starts_with("3 tasks")));
        }
    }
}
