//! The last bytes of a stream, in a buffer that does not grow beyond them.

/// A buffer for the last bytes of a stream.
pub struct Ring {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The index of the oldest byte, once the buffer is full.
    start: usize,
}

impl Ring {
    /// Makes an empty buffer for so many bytes.
    pub fn new(bytes_max: usize) -> Ring {
        Ring { bytes: Vec::new(), bytes_max, start: 0 }
    }

    /// Adds bytes and drops the oldest ones if need be.
    pub fn push(&mut self, new: &[u8]) {
        let mut new = &new[new.len().saturating_sub(self.bytes_max)..];
        let room = self.bytes_max - self.bytes.len();
        let (append, rest) = new.split_at(room.min(new.len()));
        self.bytes.extend_from_slice(append);
        new = rest;
        while !new.is_empty() {
            let count = new.len().min(self.bytes_max - self.start);
            self.bytes[self.start..self.start + count].copy_from_slice(&new[..count]);
            self.start = (self.start + count) % self.bytes_max;
            new = &new[count..];
        }
    }

    /// Returns the kept bytes as text, oldest first. A character cut at the start is dropped,
    /// invalid ones are replaced.
    pub fn into_text(mut self) -> String {
        self.bytes.rotate_left(self.start);
        let full = self.bytes.len() == self.bytes_max;
        let torn = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let skip =
            if full { self.bytes.iter().take(3).take_while(|byte| torn(byte)).count() } else { 0 };
        self.bytes.drain(..skip);
        match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_end_whatever_the_pieces() {
        let text: Vec<u8> = (0..100).map(|n| b'a' + n % 26).collect();
        for size in 1..30 {
            let mut ring = Ring::new(17);
            for piece in text.chunks(size) {
                ring.push(piece);
                assert!(ring.bytes.len() <= 17);
            }
            assert_eq!(ring.into_text().as_bytes(), &text[83..]);
        }
    }

    #[test]
    fn a_torn_character_at_the_start_is_dropped() {
        let mut ring = Ring::new(4);
        ring.push("xää".as_bytes());
        assert_eq!(ring.into_text(), "ää");
        let mut ring = Ring::new(3);
        ring.push("ää".as_bytes());
        assert_eq!(ring.into_text(), "ä");
    }

    #[test]
    fn a_ring_without_room_keeps_nothing() {
        let mut ring = Ring::new(0);
        ring.push(b"abc");
        assert_eq!(ring.into_text(), "");
    }
}
