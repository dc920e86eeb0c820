//! The results of every form are those that a GPU gave.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::suite::dump::Record;
use super::suite::form::{Class, Form};
use super::suite::golden::{Entry, Golden, RECORD, check};
use super::suite::{emulate, forms, module};

fn golden(forms: &[Form]) -> Golden {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/differential.bin");
    Golden::read(&path, forms, module::fingerprint(forms)).unwrap_or_else(|e| panic!("{e}"))
}

/// What is wrong with the emulator's result, if anything.
fn verdict(form: &Form, entry: &Entry, record: &Record) -> Option<String> {
    if let Entry::Absent(why) = entry {
        return Some(format!("{}: there is no answer of a GPU ({why}); {RECORD}", form.name));
    }
    match record {
        Record::Ran(got) => {
            let d = check(form, entry, got);
            (d.threads > 0).then(|| format!("{}: {}", form.name, d.details.join("; ")))
        }
        Record::Refused(why) => Some(format!("{}: the emulator refused it: {why}", form.name)),
        Record::Failed(why) => Some(format!("{}: it failed: {why}", form.name)),
    }
}

#[test]
fn every_form_gives_what_a_gpu_gave() {
    let forms = forms::all();
    let golden = golden(&forms);
    let modules = module::modules(&forms);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(m) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
            let records = emulate::run(&forms, m);
            let bad = records
                .iter()
                .filter_map(|(i, record)| verdict(&forms[*i], &golden.entries[*i], record));
            wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(bad);
        }
    };
    std::thread::scope(|s| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(s.spawn(work)));
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        wrong.is_empty(),
        "{} of {} forms differ from {}:\n{}",
        wrong.len(),
        forms.len(),
        golden.origin,
        wrong.join("\n")
    );
}

#[test]
fn a_single_wrong_bit_is_noticed() {
    let forms = forms::all();
    let golden = golden(&forms);
    let modules = module::modules(&forms);
    let (mut exact, mut approx) = (0, 0);
    let approximate = |i: &usize| matches!(forms[*i].class, Class::Approx(_));
    // The first form of each kind in every tenth module, and in those with approximate ones.
    let some = modules.iter().enumerate();
    for (_, m) in some.filter(|(n, m)| n % 10 == 0 || m.forms.iter().any(approximate)) {
        let records = emulate::run(&forms, m);
        for approximate in [false, true] {
            let kind = |i: usize| matches!(forms[i].class, Class::Approx(_)) == approximate;
            let Some((i, Record::Ran(right))) = records.iter().find(|(i, _)| kind(*i)) else {
                continue;
            };
            let (form, entry) = (&forms[*i], &golden.entries[*i]);
            assert_eq!(verdict(form, entry, &Record::Ran(right.clone())), None);
            let mut bytes = right.clone();
            let first = form.compared().next().expect("a form has an output");
            // The highest bit of the exponent, or the last bit of an exact result.
            let at = form.output_at(first, 0).start;
            match form.class {
                Class::Approx(bound) => {
                    bytes[at + bound.format.bits() as usize / 8 - 1] ^= 0x40;
                    approx += 1;
                }
                Class::Exact => {
                    bytes[at] ^= 1;
                    exact += 1;
                }
            }
            let wrong = verdict(form, entry, &Record::Ran(bytes));
            assert!(wrong.is_some_and(|w| w.starts_with(&form.name)), "{}", form.name);
        }
    }
    assert!(exact > 3 && approx > 0, "{exact} exact and {approx} approximate forms were tried");
}

#[test]
fn a_form_without_an_answer_is_no_success() {
    let forms = forms::all();
    let absent = Entry::Absent("it did not run".into());
    let wrong = verdict(&forms[0], &absent, &Record::Ran(vec![0; forms[0].output_bytes()]));
    assert!(wrong.is_some_and(|w| w.contains("record it again")));
}
