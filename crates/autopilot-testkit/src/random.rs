//! Random numbers from a seed: the same on every machine, and none from anywhere else.

/// `splitmix64`. Small, and good enough to choose faults by.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(mix(seed, 0x5eed))
    }

    /// A stream of its own for each purpose, so that leaving one fault out changes no other draw.
    pub fn stream(seed: u64, purpose: u64) -> Random {
        Random(mix(mix(seed, 0x5eed), purpose))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// From 0 to `end` without it; 0 when there is nothing to choose from.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.draw() % end }
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }
}

/// Folds a value into a hash.
pub fn mix(hash: u64, value: u64) -> u64 {
    scramble(hash.rotate_left(7) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(hash, bytes.len() as u64), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash, u64::from_le_bytes(word))
    })
}

fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_always() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..4).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn streams_are_independent_of_each_other() {
        assert_ne!(Random::stream(1, 1).draw(), Random::stream(1, 2).draw());
    }
}
