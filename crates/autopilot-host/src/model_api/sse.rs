//! Server-sent events, read from bytes as they arrive.

/// The event that is arriving.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Option<String>,
}

/// The longest event; the last one of an answer holds the whole answer once more.
pub(super) const EVENT_BYTES_MAX: usize = 16 << 20;

/// The error of an event that is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventTooLong;

impl Events {
    /// Calls `each` with the data of every event that is complete.
    pub(super) fn push<E: From<EventTooLong>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.line_ended(&mut each)?;
        }
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > EVENT_BYTES_MAX {
            return Err(EventTooLong.into());
        }
        Ok(())
    }

    /// Ends the last event, because some servers leave out the empty line after it.
    pub(super) fn end<E: From<EventTooLong>>(
        &mut self,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.line_ended(&mut each)?;
        self.line_ended(&mut each)
    }

    fn line_ended<E>(&mut self, each: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line));
        if line.is_empty() {
            return self.data.take().map_or(Ok(()), |data| each(&data));
        }
        // Names, comments and retry times say nothing that the data does not.
        if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            match &mut self.data {
                Some(before) => {
                    before.push('\n');
                    before.push_str(data);
                }
                None => self.data = Some(data.to_owned()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut got = Vec::new();
        let mut keep = |data: &str| -> Result<(), EventTooLong> {
            got.push(data.to_owned());
            Ok(())
        };
        for piece in pieces {
            events.push(piece, &mut keep).unwrap();
        }
        events.end(&mut keep).unwrap();
        got
    }

    #[test]
    fn events_are_the_same_however_the_bytes_come() {
        let whole =
            "event: a\r\ndata: {\"x\":\"é\"}\r\n\r\n: ping\n\ndata:1\ndata: 2\n\nid: 3\ndata: last";
        let expected = ["{\"x\":\"é\"}", "1\n2", "last"];
        assert_eq!(read(&[whole.as_bytes()]), expected);
        for size in 1..9 {
            let pieces: Vec<&[u8]> = whole.as_bytes().chunks(size).collect();
            assert_eq!(read(&pieces), expected, "{size}");
        }
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let mut events = Events::default();
        let piece = vec![b'x'; EVENT_BYTES_MAX / 2 + 1];
        let none = |_: &str| -> Result<(), EventTooLong> { Ok(()) };
        events.push(&piece, none).unwrap();
        assert_eq!(events.push(&piece, none), Err(EventTooLong));
        let mut events = Events::default();
        let piece = [b"data: ".as_slice(), &piece, b"\n"].concat();
        events.push(&piece, none).unwrap();
        assert_eq!(events.push(&piece, none), Err(EventTooLong));
    }
}
