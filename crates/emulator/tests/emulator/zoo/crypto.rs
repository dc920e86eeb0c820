//! Hashes, ciphers and integers, from their definitions and with known answers.

use super::{args, go, on};
use crate::common::Random;

#[test]
fn checksums() {
    on("crypto", &["80"], |d| {
        let mut r = Random(197);
        let mut start = vec![0i32];
        (0..70).for_each(|_| start.push(start[start.len() - 1] + (r.next() % 40) as i32));
        let mut text: Vec<u8> = (0..start[70] + 9).map(|_| r.next() as u8).collect();
        start.push(start[70] + 9);
        text.splice(start[70] as usize.., *b"123456789");
        let crc = d.alloc::<u32>(71);
        go(d, "crc_prepare", 1, 256, 0, &args![]);
        go(d, "crc32", 3, 32, 0, &args![d.upload(&text), d.upload(&start), crc, 71]);
        let got = d.download::<u32>(crc, 71);
        assert_eq!(got[70], 0xcbf4_3926, "the check value of CRC-32");
        for (i, got) in got.into_iter().enumerate() {
            let message = &text[start[i] as usize..start[i + 1] as usize];
            // The remainder of the message, bit by bit, least significant first.
            let bits = message.iter().flat_map(|b| (0..8).map(move |k| u32::from(b >> k & 1)));
            let step =
                |c: u32, bit: u32| (c >> 1) ^ if (c ^ bit) & 1 == 1 { 0xedb8_8320 } else { 0 };
            assert_eq!(got, !bits.fold(u32::MAX, step), "message {i}");
        }
    });
}

fn primes() -> impl Iterator<Item = u64> {
    (2..).filter(|n| (2..*n).take_while(|p| p * p <= *n).all(|p| n % p != 0))
}

/// The first 32 bits after the point of the `degree`-th root of `n`.
fn root_fraction(n: u64, degree: u32) -> u32 {
    let (mut low, mut high) = (0u128, 1 << 36);
    let target = u128::from(n) << (32 * degree).min(96);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle.pow(degree) <= target { low = middle } else { high = middle }
    }
    low as u32
}

fn sha256(message: &[u8]) -> [u32; 8] {
    let k: Vec<u32> = primes().take(64).map(|p| root_fraction(p, 3)).collect();
    let mut h: Vec<u32> = primes().take(8).map(|p| root_fraction(p, 2)).collect();
    let mut padded = [message, &[0x80]].concat();
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let word = |c: &[u8]| u32::from_be_bytes(c.try_into().unwrap());
        let mut w: Vec<u32> = block.chunks(4).map(word).collect();
        for t in 16..64 {
            let (x, y) = (w[t - 15], w[t - 2]);
            let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            w.push(w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1));
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut i] =
            <[u32; 8]>::try_from(&h[..]).unwrap();
        for (k, w) in k.iter().zip(&w) {
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = g ^ (e & (f ^ g));
            let t = [s1, choice, *k, *w].iter().fold(i, |s, v| s.wrapping_add(*v));
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let most = (a & b) | (c & (a | b));
            (i, g, f, e) = (g, f, e, d.wrapping_add(t));
            (d, c, b, a) = (c, b, a, t.wrapping_add(s0).wrapping_add(most));
        }
        let add = [a, b, c, d, e, f, g, i];
        h.iter_mut().zip(add).for_each(|(h, v)| *h = h.wrapping_add(v));
    }
    h.try_into().unwrap()
}

#[test]
fn digests() {
    let abc = sha256(b"abc");
    assert_eq!((abc[0], abc[7]), (0xba78_16bf, 0xf200_15ad), "the known answer for abc");
    on("crypto", &["80"], |d| {
        let mut r = Random(199);
        for (len, n) in [(0usize, 1usize), (3, 40), (55, 33), (56, 2), (64, 1), (150, 5)] {
            let text: Vec<u8> = (0..(n * len).max(1)).map(|_| r.next() as u8).collect();
            let out = d.alloc::<u32>(8 * n);
            let p = args![d.upload(&text), len as i32, out, n as i32];
            go(d, "sha256", n.div_ceil(32), 32, 0, &p);
            let want: Vec<u32> = (0..n).flat_map(|i| sha256(&text[i * len..][..len])).collect();
            assert_eq!(d.download::<u32>(out, 8 * n), want, "{len} bytes");
        }
    });
}

#[test]
fn stream_cipher() {
    on("crypto", &["80"], |d| {
        // RFC 8439, section 2.4.2: the key 00 01 … 1f, the nonce, and a text of 114 bytes.
        let key: Vec<u8> = (0..32).chain([0, 0, 0, 0, 0, 0, 0, 0x4a, 0, 0, 0, 0]).collect();
        let mut text =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip \
            for the future, sunscreen would be it."
                .to_vec();
        text.resize(40 * 64, 0);
        let out = d.alloc::<u8>(text.len());
        let (k, x) = (d.upload(&key), d.upload(&text));
        go(d, "chacha20", 2, 32, 0, &args![x, out, k, 1u32, 40]);
        let got = d.download::<u8>(out, text.len());
        assert_eq!(got[..8], [0x6e, 0x2e, 0x35, 0x9a, 0x25, 0x68, 0xf9, 0x80]);
        assert_eq!(got[112..114], [0x87, 0x4d]);
        // Once more is the text again.
        go(d, "chacha20", 2, 32, 0, &args![out, x, k, 1u32, 40]);
        assert_eq!(d.download::<u8>(x, text.len()), text);
        assert_eq!(got[128..].chunks(64).filter(|c| *c == &got[128..192]).count(), 1);
    });
}

#[test]
fn modular_powers() {
    on("crypto", &["80"], |d| {
        let mut r = Random(211);
        let n = 77usize;
        let mut make =
            |odd: u64| -> Vec<u64> { (0..n).map(|i| (r.next() >> (i % 50)) | odd).collect() };
        let (mut base, exponent, mut modulus) = (make(0), make(0), make(1));
        (modulus[0], modulus[1], modulus[2], base[3]) = (u64::MAX, 1, 3, 0);
        let out = d.alloc::<u64>(n);
        let p = args![d.upload(&base), d.upload(&exponent), d.upload(&modulus), out, n as i32];
        go(d, "power_mod", 2, 64, 0, &p);
        for (i, got) in d.download::<u64>(out, n).into_iter().enumerate() {
            let m = u128::from(modulus[i]);
            let mut x = 1 % m;
            for bit in (0..64).rev() {
                x = x * x % m;
                if exponent[i] >> bit & 1 == 1 {
                    x = x * (u128::from(base[i]) % m) % m;
                }
            }
            assert_eq!(u128::from(got), x, "{} ^ {} mod {m}", base[i], exponent[i]);
        }
    });
}

#[test]
fn integers_of_128_bits() {
    on("crypto", &["80"], |d| {
        let mut r = Random(223);
        let n = 90usize;
        let mut make = || -> Vec<i64> { (0..n).map(|i| r.next() as i64 >> (i * 5 % 61)).collect() };
        let (mut a, mut b) = (make(), make());
        (a[0], b[0], a[1], b[1], b[2]) = (i64::MIN, -1, i64::MAX, i64::MIN, 0);
        let out = d.alloc::<u64>(8 * n);
        go(d, "wide_integers", 3, 32, 0, &args![d.upload(&a), d.upload(&b), out, n as i32]);
        for (i, got) in d.download::<u64>(out, 8 * n).chunks(8).enumerate() {
            let (x, y) = (i128::from(a[i]), i128::from(b[i]));
            let (p, q) = (x * y, (x << 40) + y);
            let shifted = ((q as u128) >> (x & 127)).wrapping_mul(3) as i128;
            let want = [
                p,
                q.checked_div(y).unwrap_or(0),
                q.checked_rem(y).unwrap_or(0),
                (p >> (y & 127)).wrapping_sub(shifted).wrapping_add(i128::from(p < q)),
            ];
            for (k, want) in want.into_iter().enumerate() {
                let got = u128::from(got[2 * k + 1]) << 64 | u128::from(got[2 * k]);
                assert_eq!(got as i128, want, "result {k} of {x}, {y}");
            }
        }
    });
}

#[test]
fn primes_by_sieve() {
    on("crypto", &["80"], |d| {
        for (blocks, threads) in [(3usize, 64usize), (1, 32)] {
            let (bits, count) = (d.alloc::<u64>(blocks * threads), d.upload(&[0u32]));
            go(d, "sieve", blocks, threads, threads * 8, &args![bits, count]);
            let bits = d.download::<u64>(bits, blocks * threads);
            let below = 64 * (blocks * threads) as u64;
            let want: Vec<u64> = primes().take_while(|p| *p < below).collect();
            let got = (0..below).filter(|v| bits[*v as usize / 64] >> (v % 64) & 1 == 1);
            assert_eq!(got.collect::<Vec<u64>>(), want);
            assert_eq!(d.download::<u32>(count, 1)[0] as usize, want.len());
        }
    });
}

#[test]
fn codes_and_divisors() {
    on("crypto", &["80"], |d| {
        let mut r = Random(227);
        let groups = 50usize;
        let mut x: Vec<u8> = (0..3 * groups).map(|_| r.next() as u8).collect();
        x[..6].copy_from_slice(b"foobar");
        let out = d.alloc::<u8>(4 * groups);
        go(d, "base64", 2, 32, 0, &args![d.upload(&x), out, groups as i32]);
        let got = d.download::<u8>(out, 4 * groups);
        assert_eq!(&got[..8], b"Zm9vYmFy");
        let value = |c: u8| match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            _ => 62 + u8::from(c == b'/'),
        };
        for (x, got) in x.chunks(3).zip(got.chunks(4)) {
            let v = got.iter().fold(0, |v, c| v << 6 | u32::from(value(*c)));
            assert_eq!(v.to_be_bytes()[1..], *x);
        }

        let n = 100usize;
        let mut make =
            || -> Vec<u64> { (0..n).map(|i| (r.next() >> 6 >> (i % 40)) * 60).collect() };
        let (mut a, b) = (make(), make());
        a[5] = 0;
        let out = d.alloc::<u64>(n);
        go(d, "gcd", 4, 32, 0, &args![d.upload(&a), d.upload(&b), out, n as i32]);
        for (i, got) in d.download::<u64>(out, n).into_iter().enumerate() {
            // By halving and subtracting, with no division.
            let (mut x, mut y) = (a[i], b[i]);
            let twos = (x | y).trailing_zeros();
            while x != 0 && y != 0 {
                x >>= x.trailing_zeros();
                y >>= y.trailing_zeros();
                if x >= y { x -= y } else { y -= x }
            }
            let odd = x | y;
            assert_eq!(got, odd >> odd.trailing_zeros() << twos, "{} and {}", a[i], b[i]);
        }
    });
}
