//! Counts wrong keys by the address that sent them: [`KeyAttempts`]. If an address guesses keys,
//! the server stops comparing its keys.
//!
//! Each address begins with some attempts and receives new ones slowly. A wrong key costs an
//! attempt, a right key none. An address without attempts receives 429 for any other key, right or
//! wrong, because another answer would confirm or refute a guess. Keys that were right from this
//! address earlier remain usable, so that other callers behind the same proxy are not locked out.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of wrong keys that an address may send before it must wait.
const BURST: f64 = 30.0;

/// Number of new attempts that an address receives per second.
const PER_SECOND: f64 = 1.0;

/// Maximum number of addresses that are remembered. A new address replaces the address that has
/// sent no key for the longest time.
const MAX_ADDRESSES: usize = 4096;

/// Maximum number of right keys that are remembered for an address.
const MAX_KNOWN: usize = 16;

/// Attempts by address.
#[derive(Default)]
pub(crate) struct KeyAttempts(Mutex<HashMap<Option<IpAddr>, Attempts>>);

struct Attempts {
    left: f64,
    at: Instant,
    /// Hashes of keys that were right, the most recent last.
    known: Vec<blake3::Hash>,
}

/// Error of an address without attempts: the time until it has an attempt again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) Duration);

impl KeyAttempts {
    /// Takes an attempt for each of these keys that has not been right from this address before.
    pub(crate) fn take(
        &self,
        from: Option<IpAddr>,
        keys: &[blake3::Hash],
        now: Instant,
    ) -> Result<(), TooMany> {
        let mut all = self.lock();
        let attempts = entry(&mut all, network(from), now);
        let needed = keys.iter().filter(|key| !attempts.known.contains(key)).count() as f64;
        if attempts.left < needed {
            let seconds = (needed - attempts.left) / PER_SECOND;
            return Err(TooMany(Duration::from_secs_f64(seconds)));
        }
        attempts.left -= needed;
        Ok(())
    }

    /// Records that this key is right, and restores its attempt.
    pub(crate) fn right(&self, from: Option<IpAddr>, key: blake3::Hash, now: Instant) {
        let mut all = self.lock();
        let attempts = entry(&mut all, network(from), now);
        if attempts.known.contains(&key) {
            return;
        }
        attempts.left = (attempts.left + 1.0).min(BURST);
        if attempts.known.len() == MAX_KNOWN {
            attempts.known.remove(0);
        }
        attempts.known.push(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, Attempts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the current attempts of an address.
fn entry(
    all: &mut HashMap<Option<IpAddr>, Attempts>,
    from: Option<IpAddr>,
    now: Instant,
) -> &mut Attempts {
    if all.len() >= MAX_ADDRESSES && !all.contains_key(&from) {
        let oldest = all.iter().min_by_key(|(_, attempts)| attempts.at).map(|(from, _)| *from);
        oldest.map(|oldest| all.remove(&oldest));
    }
    let fresh = || Attempts { left: BURST, at: now, known: Vec::new() };
    let attempts = all.entry(from).or_insert_with(fresh);
    let passed = now.saturating_duration_since(attempts.at).as_secs_f64();
    attempts.left = (attempts.left + passed * PER_SECOND).min(BURST);
    attempts.at = now;
    attempts
}

/// Returns the network to which an address belongs: an IPv6 client controls all 2^64 addresses of
/// its network.
fn network(from: Option<IpAddr>) -> Option<IpAddr> {
    Some(match from?.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> blake3::Hash {
        blake3::hash(text.as_bytes())
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn an_address_that_guesses_is_refused_and_others_are_not() {
        let (guesses, start) = (KeyAttempts::default(), Instant::now());
        let (here, there) = (address("10.0.0.1"), address("10.0.0.2"));
        guesses.take(here, &[key("right")], start).unwrap();
        guesses.right(here, key("right"), start);
        let admitted = (0..1000)
            .filter(|number| guesses.take(here, &[key(&number.to_string())], start).is_ok())
            .count();
        assert_eq!(admitted, BURST as usize);
        let TooMany(wait) = guesses.take(here, &[key("new")], start).unwrap_err();
        assert_eq!(wait, Duration::from_secs_f64(1.0 / PER_SECOND));
        // A key in use at this address, and every other address, is served throughout.
        assert!(guesses.take(here, &[key("right")], start).is_ok());
        let beside = [key("right"), key("new")];
        assert!(guesses.take(here, &beside, start).is_err(), "a right key hides no guess");
        assert!(guesses.take(there, &[key("new")], start).is_ok());
        // New attempts follow from the time that has passed.
        let later = start + Duration::from_secs(10);
        let admitted = (0..1000)
            .filter(|number| guesses.take(here, &[key(&number.to_string())], later).is_ok())
            .count();
        assert_eq!(admitted, (10.0 * PER_SECOND) as usize);
    }

    #[test]
    fn right_keys_cost_nothing_and_are_bounded() {
        let (guesses, now) = (KeyAttempts::default(), Instant::now());
        let here = address("::1");
        for number in 0..1000 {
            let key = key(&number.to_string());
            guesses.take(here, &[key], now).unwrap();
            guesses.right(here, key, now);
        }
        let all = guesses.lock();
        let attempts = all.values().next().unwrap();
        assert_eq!((all.len(), attempts.known.len()), (1, MAX_KNOWN));
        assert!((attempts.left - BURST).abs() < 1e-9);
    }

    #[test]
    fn addresses_are_bounded_and_a_network_of_ipv6_is_one() {
        let (guesses, now) = (KeyAttempts::default(), Instant::now());
        for number in 0..2 * MAX_ADDRESSES as u32 {
            let from = Some(IpAddr::from(number.to_be_bytes()));
            let _ = guesses.take(from, &[key("x")], now + Duration::from_micros(number.into()));
        }
        assert_eq!(guesses.lock().len(), MAX_ADDRESSES);
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:1")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
        assert_eq!(network(address("::ffff:10.0.0.1")), address("10.0.0.1"));
    }
}
