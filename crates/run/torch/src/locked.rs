//! Calls whose arguments are encrypted on the device until their turn comes, and whose results are hashed there.
//!
//! The runner queues a gate, the decryption, the call and the hash, and says so in a page of its memory. The judge
//! writes the call's key there and lets it begin; the clock runs until the device has written the hashes. The next key
//! follows only then, so that no call can be computed before the results of the one before are settled.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::awaited::awaited;
use super::fork::Fork;
use super::memory::SubmissionMemory;
use super::session::{CompletedBatch, RunnerSession, unasked};
use super::wire::{Answer, Question, RunnerFault};

use warpgauge_model::gate_page::{self, Digest};

/// How a batch of locked calls is prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockedOrder {
    /// Number of the first call.
    pub first: u32,
    /// Arguments that are hashed beside the results: offset in the first call's arguments, and bytes.
    pub changing: Vec<(u64, u64)>,
}

/// Where a runner waits for keys.
#[derive(Debug)]
pub struct RunnerGate {
    page: u64,
    next: u32,
    /// Calls that were let through, as long as it is looked at whether they wait.
    calls: u32,
    /// Those that waited for the device, and so could not be queued as a whole before they began.
    waited: u32,
}

/// What the judge saw of one locked call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedCall {
    /// From its key to the hashes of its results.
    pub took: Duration,
    /// BLAKE3 of each result; those beyond the call's are undefined.
    pub digests: Vec<Digest>,
}

/// How long a runner may take to queue a call. One that takes longer waits for the device, which waits for the key.
const QUEUEING: Duration = Duration::from_millis(20);

/// Calls that wait for the device until the others are expected to, if they are half of all.
const EXPECTED: u32 = 2;

/// How often the judge looks whether the runner has answered or ended.
const LOOK: Duration = Duration::from_micros(50);

impl RunnerGate {
    /// Number of the next call.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Whether the time of a call has that of queueing it in it.
    pub fn waits(&self) -> bool {
        self.waited >= EXPECTED && 2 * self.waited >= self.calls
    }
}

impl RunnerSession {
    /// Has it load the kernels that hold calls back and hash results: base64 of an image.
    ///
    /// # Errors
    /// It cannot.
    pub fn gate(&mut self, image: &str) -> Result<RunnerGate, RunnerFault> {
        match self.ask(Question::Gate { image })?.0 {
            Answer::Gate(page) => Ok(RunnerGate { page, next: 1, calls: 0, waited: 0 }),
            other => Err(unasked(&other)),
        }
    }

    /// Makes the calls that it is ready for, each when it gets its key.
    ///
    /// # Errors
    /// It raised, ended, or did not come back.
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
                "it says that its calls have ended, of which {} of {} were let through",
                calls.len(),
                keys.len()
            ))),
            other => Err(unasked(&other)),
        }
    }
}

/// The page, as it is at a moment.
struct Words([u8; gate_page::WORDS]);

impl Words {
    fn at(&self, place: usize) -> u32 {
        let bytes = [0, 1, 2, 3].map(|byte| self.0[place + byte]);
        u32::from_ne_bytes(bytes)
    }
}

/// Calls that are let through one after the other, as long as the runner neither answers nor ends.
struct Turns<'a> {
    fork: &'a Fork,
    gate: &'a mut RunnerGate,
    deadline: Instant,
    looked: Instant,
}

impl Turns<'_> {
    /// Gives one call its key, and waits for the hashes. `None`: the runner has answered or ended, or is late.
    fn take(&mut self, number: u32, key: &Digest) -> Option<LockedCall> {
        let begun = Instant::now();
        let waits = self.gate.waits();
        let mut queued = false;
        self.until(|words| {
            queued = words.at(gate_page::QUEUED) == number;
            let may_wait = waits || begun.elapsed() > QUEUEING;
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

    /// Where a place of the page is. The page's address is the runner's word.
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
                // What the page says may have come between reading it and the answer.
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
