//! Events between processes.

use crate::puppet::Puppet;

const LOST: &str = "CUDA_ERROR_EXTERNAL_DEVICE";
const NOT_READY: &str = "CUDA_ERROR_NOT_READY";
/// `CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`.
const SHARED: &str = "event 6";

/// Two processes, the first with an event that the second has opened.
struct Pair {
    home: tempfile::TempDir,
    one: Puppet,
    other: Puppet,
    handle: String,
    here: String,
    there: String,
}

impl Pair {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Puppet::start(home.path()), Puppet::start(home.path()));
        let here = one.does(SHARED);
        let handle = one.does(&format!("export-event {here}"));
        let there = other.does(&format!("open-event {handle}"));
        Pair { home, one, other, handle, here, there }
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.home.path()).unwrap().count()
    }
}

#[test]
fn a_stream_waits_for_one_of_another_process() {
    let Pair { home: _home, mut one, mut other, here, there, .. } = Pair::new();
    other.does(&format!("query {there}"));
    let base = one.does("alloc 4096");
    let handle = one.does(&format!("export {base}"));
    let mapped = other.does(&format!("open {handle}"));
    for round in 0..3 {
        one.does("stall");
        one.does(&format!("put {base} {} 4", 10 * round));
        one.does(&format!("record {here}"));
        assert_eq!(one.fails(&format!("query {here}")), NOT_READY);
        assert_eq!(other.fails(&format!("query {there}")), NOT_READY);
        other.does(&format!("wait {there}"));
        other.tell(&format!("take {mapped} 2"));
        one.does("go");
        assert_eq!(other.hear().unwrap(), format!("{} {}", 10 * round, 10 * round + 1));
        one.does(&format!("wait-here {here}"));
        other.does(&format!("query {there}"));
    }
    one.end();
    other.end();
}

#[test]
fn either_process_may_record() {
    let Pair { home: _home, mut one, mut other, here, there, .. } = Pair::new();
    other.does("stall");
    other.does(&format!("record {there}"));
    assert_eq!(one.fails(&format!("query {here}")), NOT_READY);
    one.tell(&format!("wait-here {here}"));
    other.does("go");
    one.hear().unwrap();
    // The last record counts, whosever it is.
    other.does("stall");
    other.does(&format!("record {there}"));
    one.does(&format!("record {here}"));
    one.does(&format!("wait-here {here}"));
    other.does(&format!("query {there}"));
    other.does("go");
    // More records than the board has places.
    for _ in 0..600 {
        one.tell(&format!("record {here}"));
        other.tell(&format!("record {there}"));
        one.hear().unwrap();
        other.hear().unwrap();
    }
    one.does(&format!("wait-here {here}"));
    other.does(&format!("wait-here {there}"));
}

#[test]
fn a_record_from_before_the_export_counts() {
    let home = tempfile::tempdir().unwrap();
    let (mut one, mut other) = (Puppet::start(home.path()), Puppet::start(home.path()));
    let (early, late) = (one.does(SHARED), one.does(SHARED));
    one.does(&format!("record {early}"));
    one.does("sync");
    one.does("stall");
    one.does(&format!("record {late}"));
    let open = |one: &mut Puppet, other: &mut Puppet, event: &str| {
        let handle = one.does(&format!("export-event {event}"));
        assert_eq!(one.does(&format!("export-event {event}")), handle);
        other.does(&format!("open-event {handle}"))
    };
    let (early, late) = (open(&mut one, &mut other, &early), open(&mut one, &mut other, &late));
    other.does(&format!("query {early}"));
    assert_eq!(other.fails(&format!("query {late}")), NOT_READY);
    other.tell(&format!("wait-here {late}"));
    one.does("go");
    other.hear().unwrap();
}

#[test]
fn nobody_waits_for_the_dead() {
    let Pair { home, mut one, mut other, handle, here, there } = Pair::new();
    one.does("stall");
    one.does(&format!("record {here}"));
    other.does(&format!("wait {there}"));
    other.tell(&format!("wait-here {there}"));
    one.kill();
    assert_eq!(other.hear().unwrap_err(), LOST);
    // The stream's work is not done on data that never came.
    assert_eq!(other.fails("sync"), LOST);
    other.does("context 0");
    assert_eq!(other.fails(&format!("query {there}")), LOST);
    // The file goes with the next process; the event goes on without its maker.
    let mut third = Puppet::start(home.path());
    let base = third.does("alloc 16");
    third.does(&format!("export {base}"));
    assert_eq!(third.fails(&format!("open-event {handle}")), "CUDA_ERROR_MAP_FAILED");
}

#[test]
fn a_new_member_is_not_taken_for_a_dead_one() {
    let Pair { home, mut one, mut other, handle, here, there } = Pair::new();
    other.does("stall");
    other.does(&format!("record {there}"));
    assert_eq!(one.fails(&format!("query {here}")), NOT_READY);
    other.kill();
    let mut third = Puppet::start(home.path());
    let there = third.does(&format!("open-event {handle}"));
    assert_eq!(one.fails(&format!("wait-here {here}")), LOST);
    assert_eq!(third.fails(&format!("query {there}")), LOST);
    third.does(&format!("record {there}"));
    one.does(&format!("wait-here {here}"));
}

#[test]
fn wrong_uses_are_refused_as_on_a_real_device() {
    let mut pair = Pair::new();
    let (one, other) = (&mut pair.one, &mut pair.other);
    assert_eq!(one.fails("event 4"), "CUDA_ERROR_INVALID_VALUE");
    let plain = one.does("event 2");
    assert_eq!(one.fails(&format!("export-event {plain}")), "CUDA_ERROR_INVALID_HANDLE");
    let open = format!("open-event {}", pair.handle);
    assert_eq!(one.fails(&open), "CUDA_ERROR_INVALID_CONTEXT");
    let there = &pair.there;
    assert_eq!(other.fails(&format!("export-event {there}")), "CUDA_ERROR_INVALID_HANDLE");
    let again = other.does(&open);
    assert_ne!(again, *there);
    other.does(&format!("destroy {again}"));
    assert_eq!(other.fails(&format!("query {again}")), "CUDA_ERROR_INVALID_HANDLE");
    one.does(&format!("destroy {}", pair.here));
    assert_eq!(other.fails(&open), "CUDA_ERROR_MAP_FAILED");
    // What is open stays usable.
    other.does(&format!("record {there}"));
    other.does(&format!("wait-here {there}"));
    assert_eq!(pair.files(), 0);
}
