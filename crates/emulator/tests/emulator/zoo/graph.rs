//! Graphs and linked structures.

use std::collections::{HashMap, VecDeque};

use super::{args, close, everywhere, go};
use crate::common::Random;

/// Rows of neighbours: where each begins, and all of them.
fn rows(n: usize, edges: &[(i32, i32)]) -> (Vec<i32>, Vec<i32>) {
    let mut near = vec![vec![]; n];
    edges.iter().for_each(|(a, b)| near[*a as usize].push(*b));
    let mut start = vec![0];
    near.iter().for_each(|v| start.push(start[start.len() - 1] + v.len() as i32));
    (start, near.concat())
}

fn random_edges(r: &mut Random, n: usize, count: usize) -> Vec<(i32, i32)> {
    let mut end = || (r.next() % n as u64) as i32;
    (0..count).map(|_| (end(), end())).collect()
}

#[test]
fn breadth_first() {
    everywhere("graph", |d| {
        let mut r = Random(173);
        for (n, count, threads) in [(900usize, 1700usize, 128usize), (2, 1, 32), (600, 40_000, 64)]
        {
            let edges = random_edges(&mut r, n, count);
            let (start, edge) = rows(n, &edges);
            let mut depth = vec![-1i32; n];
            depth[0] = 0;
            let (ds, de, dd) = (d.upload(&start), d.upload(&edge), d.upload(&depth));
            let (mut queue, mut next) = (d.upload(&vec![0i32; n]), d.alloc::<i32>(n));
            let (mut size, mut level) = (1usize, 0);
            while size > 0 {
                let found = d.upload(&[0i32]);
                let p = args![ds, de, dd, queue, size as i32, next, found, level];
                go(d, "bfs_level", size.div_ceil(threads), threads, 0, &p);
                size = d.download::<i32>(found, 1)[0] as usize;
                std::mem::swap(&mut queue, &mut next);
                level += 1;
            }
            let mut open = VecDeque::from([0usize]);
            while let Some(v) = open.pop_front() {
                for u in &edge[start[v] as usize..start[v + 1] as usize] {
                    if depth[*u as usize] < 0 {
                        depth[*u as usize] = depth[v] + 1;
                        open.push_back(*u as usize);
                    }
                }
            }
            assert_eq!(d.download::<i32>(dd, n), depth);
        }
    });
}

#[test]
fn shortest_paths() {
    everywhere("graph", |d| {
        let mut r = Random(179);
        let (n, count) = (60usize, 240usize);
        let edges = random_edges(&mut r, n, count);
        let weight: Vec<i32> = (0..count).map(|_| (r.next() % 50) as i32 + 1).collect();
        let far = 1 << 30;
        // The nearest of what is open is final.
        let from = |source: usize| {
            let (mut best, mut done) = (vec![far; n], vec![false; n]);
            best[source] = 0;
            while let Some(v) =
                (0..n).filter(|v| !done[*v] && best[*v] < far).min_by_key(|v| best[*v])
            {
                done[v] = true;
                for (e, (_, b)) in edges.iter().enumerate().filter(|(_, e)| e.0 == v as i32) {
                    best[*b as usize] = best[*b as usize].min(best[v] + weight[e]);
                }
            }
            best
        };
        let ends = |k: fn(&(i32, i32)) -> i32| d.upload(&edges.iter().map(k).collect::<Vec<i32>>());
        let (a, b, w) = (ends(|e| e.0), ends(|e| e.1), d.upload(&weight));
        let mut first = vec![far; n];
        first[0] = 0;
        let distance = d.upload(&first);
        loop {
            let changed = d.upload(&[0i32]);
            go(d, "relax", 3, 96, 0, &args![a, b, w, distance, count as i32, changed]);
            if d.download::<i32>(changed, 1)[0] == 0 {
                break;
            }
        }
        assert_eq!(d.download::<i32>(distance, n), from(0));

        let unknown = 1 << 28;
        let mut matrix = vec![unknown; n * n];
        (0..n).for_each(|v| matrix[v * n + v] = 0);
        for ((a, b), w) in edges.iter().zip(&weight) {
            let at = *a as usize * n + *b as usize;
            matrix[at] = matrix[at].min(*w);
        }
        let m = d.upload(&matrix);
        for k in 0..n as i32 {
            go(d, "floyd_warshall", (2, 8), (32, 8), 0, &args![m, n as i32, k]);
        }
        for (i, row) in d.download::<i32>(m, n * n).chunks(n).enumerate() {
            let far = |v: &i32| if *v >= unknown { far } else { *v };
            assert_eq!(row.iter().map(far).collect::<Vec<i32>>(), from(i), "from {i}");
        }
    });
}

#[test]
fn components() {
    everywhere("graph", |d| {
        let mut r = Random(181);
        for (n, count) in [(1500usize, 1100usize), (3, 1)] {
            let edges = random_edges(&mut r, n, count);
            let ends = |k: fn(&(i32, i32)) -> i32| edges.iter().map(k).collect::<Vec<i32>>();
            let parent = d.upload(&(0..n as i32).collect::<Vec<i32>>());
            let p = args![d.upload(&ends(|e| e.0)), d.upload(&ends(|e| e.1)), parent, count as i32];
            go(d, "unite", count.div_ceil(128), 128, 0, &p);
            go(d, "flatten", n.div_ceil(96), 96, 0, &args![parent, n as i32]);
            // The smallest label spreads until nothing changes.
            let mut want: Vec<i32> = (0..n as i32).collect();
            let mut changed = true;
            while changed {
                changed = false;
                for (a, b) in &edges {
                    let low = want[*a as usize].min(want[*b as usize]);
                    for v in [*a as usize, *b as usize] {
                        changed |= want[v] != low;
                        want[v] = low;
                    }
                }
            }
            assert_eq!(d.download::<i32>(parent, n), want);
        }
    });
}

#[test]
fn ranks() {
    everywhere("graph", |d| {
        let mut r = Random(191);
        let n = 120usize;
        let edges = random_edges(&mut r, n, 900);
        let back: Vec<(i32, i32)> = edges.iter().map(|(a, b)| (*b, *a)).collect();
        let (start, edge) = rows(n, &back);
        let mut degree = vec![0i32; n];
        edges.iter().for_each(|(a, _)| degree[*a as usize] += 1);
        let mut rank = vec![1.0 / n as f64; n];
        let first = vec![1f32 / n as f32; n];
        let (mut a, mut b) = (d.upload(&first), d.alloc::<f32>(n));
        let (ds, de, dg) = (d.upload(&start), d.upload(&edge), d.upload(&degree));
        for _ in 0..8 {
            go(d, "page_rank", n.div_ceil(3), 96, 0, &args![ds, de, dg, a, b, n as i32]);
            std::mem::swap(&mut a, &mut b);
            let mut next = vec![0.15 / n as f64; n];
            for (from, to) in &edges {
                next[*to as usize] +=
                    0.85 * rank[*from as usize] / f64::from(degree[*from as usize]);
            }
            rank = next;
        }
        // The ranks are about 1/120 each; seven digits of them.
        close(&d.download(a, n), &rank, 1e-8);
    });
}

#[test]
fn hash_table() {
    everywhere("graph", |d| {
        let mut r = Random(193);
        for (n, slots) in [(1000usize, 1024usize), (1, 2)] {
            let key: Vec<u32> = (0..n).map(|_| (r.next() % 700 + 1) as u32).collect();
            let value: Vec<u32> = (0..n).map(|_| (r.next() % 1000) as u32).collect();
            let table = d.upload(&vec![0u64; slots]);
            let mask = slots as u32 - 1;
            let p = args![d.upload(&key), d.upload(&value), table, mask, n as i32];
            go(d, "insert", n.div_ceil(96), 96, 0, &p);
            let mut map = HashMap::new();
            key.iter().zip(&value).for_each(|(k, v)| *map.entry(*k).or_insert(0) += *v as i32);
            let asked: Vec<u32> = (1..=800).collect();
            let found = d.alloc::<i32>(800);
            go(d, "find", 7, 128, 0, &args![d.upload(&asked), table, mask, found, 800]);
            let want: Vec<i32> = asked.iter().map(|k| map.get(k).copied().unwrap_or(-1)).collect();
            assert_eq!(d.download::<i32>(found, 800), want);
        }
    });
}

#[test]
fn linked_lists() {
    everywhere("graph", |d| {
        for (n, lists) in [(500usize, 7usize), (1, 1)] {
            let heads = d.upload(&vec![0u64; lists]);
            // Twice, with the nodes of the first time freed in between.
            for _ in 0..2 {
                let p = args![heads, lists as i32, n as i32];
                go(d, "push", n.div_ceil(96), 96, 0, &p);
                let (sum, length) = (d.alloc::<i64>(lists), d.alloc::<i32>(lists));
                go(d, "drain", 1, lists, 0, &args![heads, sum, length]);
                let of = |l: usize| (0..n as i64).filter(move |i| *i as usize % lists == l);
                let sums: Vec<i64> = (0..lists).map(|l| of(l).sum()).collect();
                let lengths: Vec<i32> = (0..lists).map(|l| of(l).count() as i32).collect();
                assert_eq!(d.download::<i64>(sum, lists), sums);
                assert_eq!(d.download::<i32>(length, lists), lengths);
                assert_eq!(d.download::<u64>(heads, lists), vec![0; lists]);
            }
        }
    });
}
