//! Instructions that the compared suite does not have, and one that there is not.

use super::suite::dump::Record;
use super::suite::form::{Form, little};
use super::suite::value::Ty;
use super::suite::{emulate, module};

fn run(form: Form) -> Record {
    let forms = [form];
    let all = module::modules(&forms);
    let mut records = emulate::run(&forms, &all[0]);
    records.remove(0).1
}

/// Results of one instruction on its operands, with literals of each line.
fn results(lines: &[&str], ty: Ty) -> Vec<u64> {
    let body: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let n = lines.iter().filter(|l| l.contains("%o")).count();
    let form = Form::new("by hand", body).sm(90).outs(ty, n).block([32, 1, 1], 1);
    match run(form.clone()) {
        Record::Ran(out) => (0..n).map(|o| little(&out[form.output_at(o, 0)])).collect(),
        Record::Refused(why) | Record::Failed(why) => panic!("{why}"),
    }
}

#[test]
fn mad24_saturates_the_sum() {
    let got = results(
        &[
            "mov.s32 %r0, 0x7fffff;\nmov.s32 %r1, -0x800000;",
            "mad24.hi.sat.s32 %o0, %r0, %r0, 0x7fffffff;",
            "mad24.hi.sat.s32 %o1, %r0, %r1, -2147483648;",
            "mad24.hi.sat.s32 %o2, %r0, 65536, 5;",
        ],
        Ty::B32,
    );
    assert_eq!(got, [0x7fff_ffff, 0x8000_0000, 0x0080_0004]);
}

#[test]
fn relu_of_pairs() {
    let got = results(
        &[
            "mov.b32 %r0, 0xfffe0005;\nmov.b32 %r1, 0x0003fff0;",
            "min.relu.s16x2 %o0, %r0, %r1;",
            "max.relu.s16x2 %o1, %r0, %r1;",
        ],
        Ty::B32,
    );
    assert_eq!(got, [0, 0x0003_0005]);
}

#[test]
fn no_cluster_is_explicit() {
    let got =
        results(&["mov.pred %p0, %is_explicit_cluster;", "selp.b32 %o0, 1, 2, %p0;"], Ty::B32);
    assert_eq!(got, [2]);
}

#[test]
fn atomics_have_no_ftz() {
    let body = "atom.global.add.ftz.f32 %o0, [%m], 0f3F800000;";
    let form = Form::new("by hand", body).outs(Ty::B32, 1).memory(16).block([32, 1, 1], 1);
    match run(form) {
        Record::Refused(why) => assert!(why.contains("ftz"), "{why}"),
        Record::Ran(_) | Record::Failed(_) => panic!("it was taken"),
    }
}
