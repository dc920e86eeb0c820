//! The device kernels that lock inputs and hash results agree with ChaCha8 and BLAKE3 on the host.

use std::path::Path;

use base64::Engine;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};
use warpgauge_device::locked::Locks;
use warpgauge_device::support::{self, Support};
use warpgauge_device::{DeviceBuffer, DriverChoice, Stream, loader};
use warpgauge_model::{Image, ImageFormat};

use crate::server::{self, Server};

/// The worker's own kernels, compiled for the device.
pub(crate) fn own_kernels(server: &Server) -> Image {
    let metadata = json!({"kernel_name": "wg_commit", "compiler_options": support::OPTIONS});
    let kernel =
        json!({"kernel_type": "cuda", "source_code": support::SOURCE, "metadata": metadata});
    let answer = server.post_json("/compile", &json!({"kernel": kernel, "return_image": true}));
    let image: &Value = &answer.json["image_b64"];
    let engine = base64::engine::general_purpose::STANDARD;
    let bytes = engine.decode(image.as_str().unwrap_or_else(|| panic!("{}", answer.text))).unwrap();
    let format = if bytes.starts_with(b"\x7fELF") { ImageFormat::Cubin } else { ImageFormat::Ptx };
    Image { bytes: bytes.into(), format }
}

pub(crate) fn driver(directory: &Path) -> warpgauge_device::Driver {
    let choice = match server::emulated() {
        true => {
            DriverChoice::Emulator(server::program_path().with_file_name(loader::EMULATOR_FILE))
        }
        false => DriverChoice::Cuda,
    };
    loader::load(&choice, directory).unwrap().driver
}

#[test]
fn windows_are_locked_with_chacha8_and_ranges_are_hashed_with_blake3() {
    let server = Server::start();
    let image = own_kernels(&server);
    let directory = tempfile::tempdir().unwrap();
    let driver = driver(directory.path());
    let info = driver.device_info(0).unwrap();
    let context = driver.open(0).unwrap();
    let stream = Stream::new(&context).unwrap();
    let support = Support::load(&context, &image, &info).unwrap();
    let mut locks = Locks::new(&context, &support, &stream).unwrap();
    let content: Vec<u8> =
        (0..400_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let memory = DeviceBuffer::new(&context, content.len() as u64, "content").unwrap();
    memory.copy_from_host(0, &content, &stream).unwrap();

    // Ranges: none, parts of a block, of a chunk and of a group, at odd addresses, and more than one group.
    let ranges = [
        (0, 0),
        (1, 1),
        (3, 64),
        (16, 65),
        (0, 1024),
        (5, 1025),
        (7, 4096),
        (0, 128 << 10),
        (1, (128 << 10) + 1),
        (2, 300_000),
        (0, 400_000),
    ];
    let at: Vec<_> = ranges.iter().map(|(at, bytes)| (memory.address() + at, *bytes)).collect();
    // Twice: the counters are 0 again.
    for _ in 0..2 {
        let found = locks.digests(&at).unwrap();
        for ((from, bytes), digest) in ranges.iter().zip(found) {
            let part = &content[*from as usize..(*from + *bytes) as usize];
            assert_eq!(digest, *blake3::hash(part).as_bytes(), "{bytes} bytes at {from}");
        }
    }

    let keys = [[7; 32], [9; 32]];
    let windows = [(memory.address(), 512), (memory.address() + 512, 102_400)];
    let turn = |locks: &Locks<'_>| {
        (0..).zip(&windows).for_each(|(key, window)| locks.turn(window.0, *window, key).unwrap());
    };
    locks.take_keys(&keys).unwrap();
    turn(&locks);
    let mut locked = vec![0; content.len()];
    memory.copy_to_host(0, &mut locked, &stream).unwrap();
    let mut expected = content.clone();
    for (key, part) in keys.iter().zip([0..512, 512..102_912]) {
        let mut output = vec![0; part.len()];
        ChaCha8Rng::from_seed(*key).fill_bytes(&mut output);
        expected[part].iter_mut().zip(output).for_each(|(byte, with)| *byte ^= with);
    }
    assert!(locked == expected);
    turn(&locks);
    memory.copy_to_host(0, &mut locked, &stream).unwrap();
    assert!(locked == content);
    // To other memory: the window stays.
    let other = DeviceBuffer::new(&context, 512, "another window").unwrap();
    locks.turn(other.address(), windows[0], 0).unwrap();
    let mut beside = vec![0; 512];
    other.copy_to_host(0, &mut beside, &stream).unwrap();
    assert!(beside == expected[..512]);
    memory.copy_to_host(0, &mut locked, &stream).unwrap();
    assert!(locked == content);
}
