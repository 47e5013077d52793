//! Draws from a seed, and how many of them a campaign makes.

/// `splitmix64`.
pub struct Draw(u64);

impl Draw {
    /// A stream of its own for each case of a campaign.
    pub fn of(seed: u64, case: u64) -> Draw {
        let mut draw = Draw(seed ^ case.wrapping_mul(0xd134_2543_de82_ef95));
        draw.next();
        draw
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// The seed of this campaign, shown so that it can be replayed.
pub fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("AUTOPILOT_TORTURE_SEED", now.as_nanos() as u64 % 1_000_000_007);
    eprintln!("AUTOPILOT_TORTURE_SEED={seed}");
    seed
}
