//! Calls whose arguments stay encrypted on the device until their turn, and whose results are
//! hashed there.
//!
//! The runner queues a gate, the decryption, the call and the hash. It reports this in a page of
//! its memory. The judge writes the call's key there and opens the gate. The measured time ends
//! when the device has written the hashes. Only then does the judge give the next key, so that no
//! call can be computed before the results of the previous call are fixed.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::awaited::awaited;
use super::fork::Fork;
use super::memory::SubmissionMemory;
use super::session::{CompletedBatch, RunnerSession, unasked};
use super::wire::{Answer, Question, RunnerFault};

use warpgauge_model::gate_page::{self, Digest};

/// Settings of a batch of locked calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockedOrder {
    /// Number of the first call in the batch.
    pub first: u32,
    /// Arguments that are hashed in addition to the results: offset in the first call's arguments,
    /// and size, both in bytes.
    pub changing: Vec<(u64, u64)>,
}

/// The gate of a runner: a page of its memory, through which it receives keys and reports its
/// progress.
#[derive(Debug)]
pub struct RunnerGate {
    page: u64,
    next: u32,
    /// Number of calls that received their key before `waits` became true.
    calls: u32,
    /// Number of the counted calls that waited for the device, and so could not be queued
    /// completely before they began.
    waited: u32,
    /// Maximum wait for a call to be queued. A call that takes longer is assumed to wait for the
    /// device, which waits for the key.
    queueing: Duration,
}

/// Time and hashes of one locked call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedCall {
    /// Time from the key to the hashes of the results.
    pub took: Duration,
    /// BLAKE3 hash of each result; entries beyond the number of results are undefined.
    pub digests: Vec<Digest>,
}

/// Lower and upper limit of the maximum wait for a call to be queued.
const QUEUEING: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// Minimum number of calls that wait for the device before all calls are expected to wait. They
/// must also be half of all calls.
const EXPECTED: u32 = 2;

/// Interval at which the judge checks whether the runner has answered or ended.
const LOOK: Duration = Duration::from_micros(50);

impl RunnerGate {
    /// Returns the number of the next call.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Sets the maximum wait for a call to be queued: twice the duration of a call that needs no
    /// key. Without this, a network of 700 kernels was taken to wait for the device in one of two
    /// processes.
    pub fn expect_calls_of(&mut self, took: Duration) {
        let [least, most] = QUEUEING;
        self.queueing = (2 * took).clamp(least, most);
    }

    /// Returns whether the time of a call includes the time to queue it.
    pub fn waits(&self) -> bool {
        self.waited >= EXPECTED && 2 * self.waited >= self.calls
    }
}

impl RunnerSession {
    /// Loads the kernels that hold calls back and hash results. `image` is their binary, base64.
    ///
    /// # Errors
    /// Fails if the runner cannot load them.
    pub fn gate(&mut self, image: &str) -> Result<RunnerGate, RunnerFault> {
        match self.ask(Question::Gate { image })?.0 {
            Answer::Gate(page) => {
                Ok(RunnerGate { page, next: 1, calls: 0, waited: 0, queueing: QUEUEING[0] })
            }
            other => Err(unasked(&other)),
        }
    }

    /// Makes the prepared calls. Each begins when it gets its key.
    ///
    /// # Errors
    /// Fails if a call raised an exception, or the process ended or did not return in time.
    pub fn run_locked(
        &mut self,
        gate: &mut RunnerGate,
        keys: &[Digest],
    ) -> Result<(CompletedBatch, Vec<LockedCall>), RunnerFault> {
        let first = gate.next;
        gate.next = first.wrapping_add(keys.len() as u32);
        let let_through = |fork: &Fork, deadline| {
            let mut turns = Turns { fork, gate, deadline, looked: Instant::now() };
            let numbers = keys.iter().zip(first..);
            numbers.map_while(|(key, number)| turns.take(number, key)).collect()
        };
        let (calls, answer, took): (Vec<LockedCall>, _, _) =
            self.ask_while(Question::Run, let_through)?;
        match answer {
            Answer::Ran(returned) if calls.len() == keys.len() => {
                Ok((CompletedBatch { returned, took }, calls))
            }
            Answer::Ran(_) => Err(RunnerFault::Forged(format!(
                "it reports that its calls have ended, but only {} of {} received their key",
                calls.len(),
                keys.len()
            ))),
            other => Err(unasked(&other)),
        }
    }
}

/// A copy of the gate's page at one moment.
struct Words([u8; gate_page::WORDS]);

impl Words {
    fn at(&self, place: usize) -> u32 {
        let bytes = [0, 1, 2, 3].map(|byte| self.0[place + byte]);
        u32::from_ne_bytes(bytes)
    }
}

/// Gives calls their keys one after another, until the runner answers or ends.
struct Turns<'a> {
    fork: &'a Fork,
    gate: &'a mut RunnerGate,
    deadline: Instant,
    looked: Instant,
}

impl Turns<'_> {
    /// Gives one call its key, and waits for the hashes. Returns `None` if the runner has answered
    /// or ended, or the deadline has passed.
    fn take(&mut self, number: u32, key: &Digest) -> Option<LockedCall> {
        let begun = Instant::now();
        let (waits, queueing) = (self.gate.waits(), self.gate.queueing);
        let mut queued = false;
        self.until(|words| {
            queued = words.at(gate_page::QUEUED) == number;
            let may_wait = waits || begun.elapsed() > queueing;
            let begins = queued || may_wait && words.at(gate_page::STARTED) == number;
            begins && words.at(gate_page::ARRIVED) == number
        })?;
        if !waits {
            self.gate.calls += 1;
            self.gate.waited += u32::from(!queued);
        }
        let memory = &self.fork.memory;
        memory.write(self.at(gate_page::KEY), key).ok()?;
        let began = Instant::now();
        memory.write(self.at(gate_page::OPEN), &number.to_ne_bytes()).ok()?;
        self.until(|words| words.at(gate_page::DONE) == number)?;
        let took = began.elapsed();
        let mut digests = vec![0; 32 * gate_page::MOST_RANGES];
        memory.read(self.at(gate_page::DIGESTS), &mut digests).ok()?;
        let digests = digests.chunks_exact(32).filter_map(|digest| digest.try_into().ok());
        Some(LockedCall { took, digests: digests.collect() })
    }

    /// Returns the address of an offset in the page. The runner chose the page's address, so the
    /// address is not trusted.
    fn at(&self, place: usize) -> u64 {
        self.gate.page.wrapping_add(place as u64)
    }

    fn until(&mut self, mut holds: impl FnMut(&Words) -> bool) -> Option<()> {
        let mut words = Words([0; gate_page::WORDS]);
        let mut ended = false;
        loop {
            self.fork.memory.read(self.gate.page, &mut words.0).ok()?;
            if holds(&words) {
                return Some(());
            }
            if ended {
                return None;
            }
            let now = Instant::now();
            if now - self.looked > LOOK {
                self.looked = now;
                // The page may have changed after it was read and before the answer arrived, so it
                // is read once more.
                ended = now >= self.deadline || !awaited(&self.fork.session, now).is_empty();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use warpgauge_model::gate_page::{
        BYTES, COUNTER_BYTES, GROUP_BYTES, GROUP_HASH_BYTES, MOST_RANGES, QUEUED, STARTED,
    };

    #[test]
    fn the_interpreter_s_text_has_the_same_places() {
        let source = crate::child::SOURCE;
        for told in [
            format!("PAGE, STARTED, QUEUED = {BYTES}, {STARTED}, {QUEUED}\n"),
            format!(
                "MOST_RANGES, GROUP, COUNTERS, GROUP_HASH = {MOST_RANGES}, {GROUP_BYTES}, \
                 {COUNTER_BYTES}, {GROUP_HASH_BYTES}\n"
            ),
        ] {
            assert!(source.contains(&told), "{told}");
        }
    }
}
