//! The words after the subcommand: each is taken once, and what nobody took is an error.

use crate::step::Failure;

pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    pub fn new(words: impl Iterator<Item = String>) -> Self {
        Self { words: words.collect() }
    }

    /// Takes `name` if it is there.
    pub fn flag(&mut self, name: &str) -> bool {
        let at = self.words.iter().position(|word| word == name);
        at.map(|at| self.words.remove(at)).is_some()
    }

    /// Takes `name value`.
    pub fn value(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(None);
        };
        self.words.remove(at);
        if at == self.words.len() {
            return Err(Failure::Usage(format!("`{name}` needs a value after it")));
        }
        Ok(Some(self.words.remove(at)))
    }

    /// Takes `name N`.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let parsed = value.parse();
        parsed.map(Some).map_err(|_| Failure::Usage(format!("`{name} {value}`: not a number")))
    }

    /// Takes the first word that is not an option.
    pub fn word(&mut self) -> Option<String> {
        let at = self.words.iter().position(|word| !word.starts_with('-'))?;
        Some(self.words.remove(at))
    }

    pub fn finish(self) -> Result<(), Failure> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(Failure::Usage(format!("unexpected `{word}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_and_words_are_taken_in_any_order() {
        let mut given = arguments("B7 --seeds 12 --smoke");
        assert!(given.flag("--smoke"));
        assert!(!given.flag("--smoke"));
        assert_eq!(given.number("--seeds").unwrap(), Some(12));
        assert_eq!(given.number("--from").unwrap(), None);
        assert_eq!(given.word().as_deref(), Some("B7"));
        assert!(given.finish().is_ok());
    }

    #[test]
    fn a_word_nobody_took_is_refused() {
        assert!(arguments("--sedes 3").finish().is_err());
    }

    #[test]
    fn a_number_must_be_one() {
        assert!(arguments("--seeds").number("--seeds").is_err());
        assert!(arguments("--seeds many").number("--seeds").is_err());
    }
}
