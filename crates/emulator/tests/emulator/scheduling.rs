//! Divergence, forward progress, barriers, the device runtime, and faults.

use crate::common::{Device, Params};
use warpgauge_emulator::FaultKind;

fn device() -> Device {
    Device::new("first.80")
}

#[test]
fn locks_between_lanes_of_a_warp() {
    let d = device();
    let (lock, count) = (d.upload(&[0i32]), d.upload(&[0i32]));
    d.run("lane_lock", 2, 64, &Params::default().arg(lock).arg(count).arg(5));
    assert_eq!(d.download::<i32>(count, 1)[0], 2 * 64 * 5);
    d.run("spin_lock", 3, 96, &Params::default().arg(lock).arg(count));
    assert_eq!(d.download::<i32>(count, 1)[0], 2 * 64 * 5 + 3 * 96);
}

#[test]
fn blocks_wait_for_each_other() {
    let d = device();
    let (arrived, bad) = (d.upload(&[0u32]), d.upload(&[0u32]));
    d.run("grid_barrier", 50, 128, &Params::default().arg(arrived).arg(bad));
    assert_eq!(d.download::<u32>(arrived, 1)[0], 200);
    assert_eq!(d.download::<u32>(bad, 1)[0], 0);

    let n = 256 * 100;
    let x: Vec<u32> = (0..n).map(|i| i as u32 % 7).collect();
    let y = d.alloc::<u32>(n);
    let flags = d.upload(&[0u32; 100]);
    let p = Params::default().arg(d.upload(&x)).arg(y).arg(flags);
    let p = p.arg(d.alloc::<u32>(100)).arg(d.upload(&[0u32]));
    d.run("look_back", 100, 256, &p);
    let mut sum = 0;
    let want: Vec<u32> = x
        .iter()
        .map(|v| {
            sum += v;
            sum
        })
        .collect();
    assert_eq!(d.download::<u32>(y, n), want);
}

#[test]
fn printf_formats() {
    let d = device();
    d.run("printing", 1, 64, &Params::default().arg(41).arg(-2.345f64));
    let text = String::from_utf8(d.printed.lock().unwrap().clone()).unwrap();
    let line = |n| format!("{n}|-2.35|text|-5|7   |0xff|q|%\n");
    // −2.345 is a little more than −2.345 in binary: C rounds to −2.35 or −2.34 by that.
    let line = |n| line(n).replace("-2.35", &format!("{:5.2}", -2.345f64));
    assert_eq!(text, line(41) + &line(42));
}

#[test]
fn faults_say_what_and_where() {
    let d = device();
    let fail = |kernel: &str, grid: u32, block: u32, p: &Params| {
        *d.try_run(kernel, [grid, 1, 1], [block, 1, 1], 0, p).unwrap_err()
    };
    let f = fail("failing", 1, 64, &Params::default().arg(40));
    assert_eq!(f.kind, FaultKind::Trap);
    assert!(f.message.contains("thread (40,0,0)"), "{f}");

    let p = d.alloc::<f32>(64);
    let f = fail("out_of_bounds", 1, 64, &Params::default().arg(p).arg(1));
    assert_eq!(f.kind, FaultKind::IllegalAddress);
    let want = format!(
        "out of bounds 4-byte write at {:#x} by block (0,0,0) thread (63,0,0), \
        0 bytes after a 256-byte allocation; first.cu:",
        p + 256
    );
    assert!(f.message.starts_with(&want), "{f}");
    let finding = f.finding.unwrap();
    assert_eq!((finding.check, finding.thread, finding.bytes), ("out_of_bounds", [63, 0, 0], 4));
    assert_eq!(finding.source.unwrap().0, "first.cu");

    d.memory.free(p).unwrap();
    let f = fail("out_of_bounds", 1, 64, &Params::default().arg(p).arg(0));
    assert_eq!(f.finding.unwrap().check, "use_after_free");

    let p = d.alloc::<u8>(64);
    let f = fail("misaligned", 1, 1, &Params::default().arg(p));
    assert_eq!(f.kind, FaultKind::MisalignedAddress);

    let p = d.alloc::<i32>(64);
    let f = fail("half_barrier", 1, 64, &Params::default().arg(p));
    assert_eq!(f.kind, FaultKind::DivergentBarrierDeadlock);
    assert!(f.message.contains("barrier 1 has 32 of 64 threads"), "{f}");
}

#[test]
fn runaway_kernels_stop_at_the_deadline() {
    let mut d = device();
    d.seconds = 1;
    let p = Params::default().arg(d.upload(&[0u32]));
    for kernel in ["forever", "endless"] {
        let f = d.try_run(kernel, [20, 1, 1], [64, 1, 1], 0, &p).unwrap_err();
        assert_eq!(f.kind, FaultKind::Timeout, "{f}");
    }
}

#[test]
fn recursion_has_an_end() {
    let d = device();
    let p = d.alloc::<i32>(64);
    d.run("overflow", 1, 64, &Params::default().arg(p).arg(20));
    let deep = |n: i32| (0..=n).map(|m| if m == 0 { 0 } else { m + ((m * 7) & 15) }).sum::<i32>();
    assert_eq!(d.download::<i32>(p, 64), [deep(20); 64]);
    let f = d.try_run("overflow", [1, 1, 1], [64, 1, 1], 0, &Params::default().arg(p).arg(1 << 20));
    assert_eq!(f.unwrap_err().kind, FaultKind::StackOverflow);
}

#[test]
fn function_pointers() {
    let d = device();
    let p = d.alloc::<i32>(96);
    d.run("pointers", 1, 96, &Params::default().arg(p));
    let want: Vec<i32> = (0..96)
        .map(|t| match t % 3 {
            0 => t + 10,
            1 => t * 10,
            _ => t - 10,
        })
        .collect();
    assert_eq!(d.download::<i32>(p, 96), want);
}

#[test]
fn device_heap() {
    let d = device();
    let p = d.alloc::<i32>(128);
    for _ in 0..3 {
        d.run("list", 1, 128, &Params::default().arg(p).arg(50));
        let want: Vec<i32> = (1..=128).map(|t| t * 50 * 49 / 2).collect();
        assert_eq!(d.download::<i32>(p, 128), want);
    }
}

#[test]
fn lanes_that_part_and_meet() {
    let d = device();
    let p = d.alloc::<i32>(100);
    d.run("partial_warps", 1, 100, &Params::default().arg(p));
    let n = |t: i32| (0..t).filter(|i| i % 3 != 2).sum::<i32>();
    for (t, got) in d.download::<i32>(p, 100).into_iter().enumerate() {
        let t = t as i32;
        if t % 5 == 4 {
            assert_eq!(got, -n(t));
        } else {
            let lanes = (t / 32 * 32..(t / 32 * 32 + 32).min(100)).filter(|l| l % 5 != 4);
            let odd = lanes.filter(|l| n(*l) % 2 == 1).count() as i32;
            assert_eq!(got, n(t) + odd, "thread {t}");
        }
    }
}

#[test]
fn barriers_with_results() {
    let d = device();
    let p = d.alloc::<i32>(200);
    d.run("count_barriers", 1, 200, &Params::default().arg(p));
    assert_eq!(d.download::<i32>(p, 200), [100 * 100 + 11; 200]);
}

/// A launch that fills every worker does not keep another launch, for which it waits, from running.
#[test]
fn launches_wait_for_each_other() {
    let d = device();
    let flag = d.upload(&[0i32]);
    let lock = d.upload(&[0i32]);
    std::thread::scope(|s| {
        s.spawn(|| d.run("forever", 64, 128, &Params::default().arg(flag)));
        s.spawn(|| d.run("forever", 8, 32, &Params::default().arg(flag)));
        // 200 increments by a lock; any of them lets the others go.
        d.run("spin_lock", 2, 100, &Params::default().arg(lock).arg(flag));
    });
    assert_eq!(d.download::<i32>(flag, 1)[0], 200);
}

#[test]
fn lanes_that_point_to_different_spaces() {
    let d = device();
    let x: Vec<i32> = (0..64).map(|i| i * 11).collect();
    let (a, out) = (d.upload(&x), d.alloc::<i32>(64));
    d.run("mixed_spaces", 1, 64, &Params::default().arg(a).arg(out));
    let want = (0..64).map(|t| match t % 3 {
        0 => t * 11 + 1,
        1 => (63 - t) * 7 + 1,
        _ => t * if t & 1 == 1 { 5 } else { 3 } + 1,
    });
    assert_eq!(d.download::<i32>(out, 64), want.collect::<Vec<i32>>());
}
