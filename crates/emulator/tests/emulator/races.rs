//! Copies that no thread waits for, races between blocks, and the order in which blocks begin.

use crate::common::{Device, Params, Random};
use warpgauge_emulator::Finding;

const ARCHS: [&str; 2] = ["80", "90"];

fn device(arch: &str, sanitize: bool) -> Device {
    let mut d = Device::new(&format!("races.{arch}"));
    d.sanitize = sanitize;
    d
}

/// The line of `races.cu` that contains `text`.
fn line(text: &str) -> u32 {
    let path = format!("{}/tests/kernels/races.cu", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    source.lines().position(|l| l.contains(text)).unwrap() as u32 + 1
}

/// Checks and lines of what was found.
fn places(found: &[Finding]) -> Vec<(&'static str, u32)> {
    found.iter().map(|f| (f.check, f.source.as_ref().map_or(0, |s| s.1))).collect()
}

/// What the stage kernels compute.
fn stage_sums(x: &[f32]) -> Vec<f32> {
    let column = |t: usize| {
        x.chunks(256).fold(0f32, |sum, row| {
            let v = &row[4 * (63 - t)..][..4];
            sum + (v[0] + 2.0 * v[1] + 3.0 * v[2] + 4.0 * v[3])
        })
    };
    (0..64).map(column).collect()
}

#[test]
fn copies_land_when_they_are_waited_for() {
    for (arch, sanitize) in ARCHS.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let d = device(arch, sanitize);
        for rows in [1, 2, 3, 17] {
            let x = Random(rows as u64).floats(rows * 256);
            let (a, out) = (d.upload(&x), d.alloc::<f32>(64));
            let p = Params::default().arg(a).arg(out).arg(rows as i32);
            let want = stage_sums(&x);
            let right = |got: Vec<f32>| got.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-3);
            for kernel in ["two_stages", "three_stages"] {
                assert_eq!(d.run(kernel, 1, 64, &p).findings, [], "{kernel}");
                assert!(right(d.download(out, 64)), "{kernel}, {rows} rows");
            }
            let found = d.run("waits_too_little", 1, 64, &p).findings;
            assert!(!right(d.download(out, 64)), "{rows} rows");
            assert_eq!(sanitize, !found.is_empty());
            assert!(found.iter().all(|f| f.check == "shared_race"), "{found:#?}");
            let read = line("float4 v = stage[i % STAGES]");
            assert!(!sanitize || places(&found).contains(&("shared_race", read)), "{found:#?}");
        }
    }
}

#[test]
fn what_is_on_its_way_is_neither_read_nor_written() {
    let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
    for arch in ARCHS {
        let d = device(arch, true);
        let out = d.alloc::<f32>(64);
        let p = Params::default().arg(d.upload(&x)).arg(out);
        let found = d.run("never_waits", 1, 64, &p).findings;
        assert_eq!(places(&found), [("shared_race", line("// Nothing has come yet."))]);
        assert_eq!((found[0].count, found[0].bytes), (64, 4));
        let text = &found[0].message;
        assert!(text.contains("an asynchronous copy by warp 0 lane 0 is on its way"), "{text}");
        assert_eq!(d.download::<f32>(out, 64), [-1f32; 64]);

        let found = d.run("writes_while_copied", 1, 64, &p).findings;
        assert_eq!(places(&found), [("shared_race", line("// Is overwritten, or overwrites."))]);

        let found = d.run("waits_after_barrier", 1, 64, &p).findings;
        assert_eq!(places(&found), [("shared_race", line("they alone know"))]);
        // The source is read as late as it may be.
        d.run("changes_source", 1, 64, &p);
        assert_eq!(d.download::<f32>(out, 64), [-1f32; 64]);
    }
}

#[test]
fn barrier_objects_wait_for_copies() {
    let x = Random(3).floats(32 * 20);
    let want = |l: usize| (0..20).fold(0f32, |s, r| s + x[r * 32 + 31 - l] * (r + 1) as f32);
    for (arch, sanitize) in ARCHS.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let d = device(arch, sanitize);
        let out = d.alloc::<f32>(32);
        let p = Params::default().arg(d.upload(&x)).arg(out).arg(20);
        let right = |got: Vec<f32>| got.iter().enumerate().all(|(l, g)| (g - want(l)).abs() < 1e-3);
        assert_eq!(d.run("hands_over", 1, 64, &p).findings, []);
        assert!(right(d.download(out, 32)));
        let p = Params::default().arg(d.upload(&x)).arg(out).arg(2);
        let found = d.run("takes_too_early", 1, 64, &p).findings;
        assert!(!right(d.download(out, 32)));
        // Whichever of the two warps comes first.
        assert_eq!(sanitize, !found.is_empty());
        assert!(found.iter().all(|f| f.check == "shared_race"), "{found:#?}");
    }
}

#[test]
fn races_between_blocks_are_found() {
    for arch in ARCHS {
        let d = device(arch, true);
        let n = 256;
        let (a, b, c) = (d.upload(&[1i32; 256]), d.upload(&[0i32; 256]), d.upload(&[0i32; 256]));
        let run = |kernel, p: Params| places(&d.run(kernel, 4, 64, &p).findings);
        let all = |kernel, p, text| {
            let found = run(kernel, p);
            assert!(!found.is_empty(), "{kernel}");
            assert!(found.iter().all(|f| *f == ("global_race", line(text))), "{kernel}: {found:?}");
        };
        all("adds_plainly", Params::default().arg(a).arg(3), "// Should be an atomic.");
        let p = Params::default().arg(a).arg(b).arg(c).arg(n);
        let found = run("reads_neighbour", p);
        let (write, read) = (line("y[i] = x[i] + 1;"), line("that may not have begun"));
        assert!(found.iter().all(|f| [write, read].contains(&f.1) && f.0 == "global_race"));
        assert!(!found.is_empty());
        d.memory.write(b, &[0; 4]).unwrap();
        let found = run("resets_a_sum", Params::default().arg(b));
        assert!(!found.is_empty() && found.iter().all(|f| f.0 == "global_race"), "{found:?}");
        let p = Params::default().arg(d.upload(&[0i32])).arg(c);
        all("adds_beside_tickets", p, "// Tickets order nothing");
        let p = Params::default().arg(d.upload(&[0i32])).arg(d.upload(&[0i32])).arg(c);
        let found = run("ignores_the_flag", p);
        assert!(!found.is_empty() && found.iter().all(|f| f.0 == "global_race"), "{found:?}");

        let found = d.run("adds_plainly", 4, 64, &Params::default().arg(a).arg(3)).findings;
        let text = &found[0].message;
        assert!(text.contains("of global memory by block ("), "{text}");
        assert!(text.contains(") without synchronisation between them; races.cu:"), "{text}");
    }
}

#[test]
fn what_blocks_have_ordered_is_no_race() {
    for arch in ARCHS {
        // Whatever the order in which they begin.
        for order in [0, 1, 2] {
            let mut d = device(arch, true);
            d.order = order;
            let zeros = || d.upload(&[0i32; 1024]);
            let clean = |kernel, grid, p: Params| {
                assert_eq!(d.run(kernel, grid, 64, &p).findings, [], "{kernel}, order {order}");
            };
            let (x, total) = (d.upload(&(0..1000).collect::<Vec<i32>>()), zeros());
            let p = Params::default().arg(x).arg(zeros()).arg(zeros()).arg(total).arg(1000);
            clean("sums_at_the_end", 16, p);
            assert_eq!(d.download::<i32>(total, 1)[0], 499_500);
            for kernel in ["chain_atomic", "chain_volatile", "chain_plain", "chain_release"] {
                let cell = zeros();
                clean(kernel, 80, Params::default().arg(cell).arg(zeros()));
                assert_eq!(d.download::<i32>(cell, 1)[0], 80 * 79 / 2, "{kernel}");
            }
            clean("sets_a_flag", 16, Params::default().arg(x).arg(zeros()).arg(1000));
            let (u, v) = (d.upload(&[1u8; 999]), d.upload(&[2u8; 999]));
            let p = Params::default().arg(u + 1).arg(v + 1).arg(990);
            assert_eq!(d.run("bytes_side_by_side", 17, 61, &p).findings, []);
            let (f, most) = (d.upload(&Random(5).floats(1000)), zeros());
            clean("largest", 16, Params::default().arg(f).arg(most).arg(1000));
            clean("rows_by_ticket", 5, Params::default().arg(zeros()).arg(zeros()).arg(16));
            clean("reuses_memory", 8, Params::default().arg(zeros()));
        }
    }
}

#[test]
fn blocks_begin_in_the_order_that_the_launch_says() {
    let mut d = device("80", false);
    let x = d.upload(&[0i32]);
    let p = Params::default().arg(x);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut last = |order| {
        d.order = order;
        pool.install(|| d.run("last_writer", 64, 32, &p));
        d.download::<i32>(x, 1)[0]
    };
    assert_eq!(last(0), 63);
    let some: Vec<i32> = (1..40).map(&mut last).collect();
    assert!((1..40).map(&mut last).eq(some.iter().copied()));
    let mut different = some;
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 10, "{different:?}");
}

/// What blocks add without an atomic is lost where one reads before and writes after another.
#[test]
fn blocks_come_between_a_read_and_a_write_of_others() {
    let mut d = device("80", false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut sum = |order, kernel, flags: bool| {
        d.order = order;
        let (x, y) = (d.upload(&[0i32; 16]), d.upload(&[0i32; 16]));
        let p = Params::default().arg(x);
        let p = if flags { p.arg(y) } else { p.arg(1) };
        pool.install(|| d.run(kernel, 16, 64, &p));
        d.download::<i32>(x, 1)[0]
    };
    let all = 16 + 16 * 15 / 2;
    assert_eq!(sum(0, "adds_plainly", false), all);
    assert!((1..20).all(|order| sum(order, "adds_plainly", false) < all));
    // Who waits for the others is not disturbed.
    assert!((1..20).all(|order| sum(order, "chain_atomic", true) == 16 * 15 / 2));
}

/// More memory than is watched is not a fault of the kernel, and is said.
#[test]
fn what_cannot_be_watched_is_said() {
    let d = device("80", true);
    let n = 40 << 20;
    let (x, y) = (d.alloc::<u8>(n), d.alloc::<u8>(n));
    let p = Params::default().arg(x).arg(y).arg(n as i32);
    let blocks = (n / 1024) as u32;
    let report = d.try_run("bytes_side_by_side", [blocks, 1, 1], [1024, 1, 1], 0, &p).unwrap();
    assert!(report.unwatched);
    assert_eq!(report.findings, []);
}
