use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::{Blob, Dtype};
use crate::{Compress, DataFormat, OutputEncoding, TensorData};

fn data(bytes: &[u8]) -> TensorData {
    TensorData::raw(Blob::from_bytes(bytes))
}

fn zlib(bytes: &[u8]) -> TensorData {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    TensorData { compress: Compress::Zlib, ..data(&encoder.finish().unwrap()) }
}

fn zstd(bytes: &[u8]) -> TensorData {
    let frame = zstd::stream::encode_all(bytes, 3).unwrap();
    TensorData { compress: Compress::Zstd, ..data(&frame) }
}

fn npy(header: &str, elements: &[u8]) -> TensorData {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(elements);
    TensorData { format: DataFormat::Npy, ..data(&file) }
}

#[test]
fn exact_sizes_only_and_both_are_named() {
    let elements = [7; 24];
    for make in [data, zlib, zstd] {
        let good = make(&elements);
        assert_eq!(decode_to_vec(&good, Dtype::Float32, &[2, 3]).unwrap(), elements);
        let error = decode_to_vec(&good, Dtype::Float32, &[7]).unwrap_err().to_string();
        assert_eq!(error, "24 bytes of data, but shape [7] of float32 needs 28");
        let error = decode_to_vec(&good, Dtype::Float32, &[5]).unwrap_err().to_string();
        let came = if good.compress == Compress::None { "24" } else { "at least 21" };
        assert_eq!(error, format!("{came} bytes of data, but shape [5] of float32 needs 20"));
    }
}

#[test]
fn a_decompression_bomb_is_not_expanded() {
    let zeros = vec![0; 64 << 20];
    for bomb in [zlib(&zeros), zstd(&zeros)] {
        let mut out = Vec::new();
        let error = decode(&bomb, Dtype::Uint8, &[1000], &mut out).unwrap_err();
        assert!(matches!(error, DecodeError::Size { came: 1001, at_least: true, .. }), "{error}");
        assert_eq!(out.len(), 1000);
    }
}

#[test]
fn damaged_data_is_named() {
    let elements: Vec<u8> = (0..=255).cycle().take(4000).collect();
    for make in [zlib, zstd] {
        let good = make(&elements);
        let bytes = good.data_b64.to_bytes(1 << 20).unwrap();
        let cut =
            TensorData { data_b64: Blob::from_bytes(&bytes[..bytes.len() / 2]), ..good.clone() };
        let other = TensorData { data_b64: Blob::from_bytes(&elements), ..good };
        for damaged in [cut, other] {
            let error = decode_to_vec(&damaged, Dtype::Uint8, &[4000]).unwrap_err();
            let named = matches!(error, DecodeError::Corrupt { .. } | DecodeError::Size { .. });
            assert!(named && !error.is_environment(), "{error}");
        }
    }
    let broken = TensorData { data_b64: Blob::from_base64("AAA*"), ..data(b"") };
    let error = decode_to_vec(&broken, Dtype::Uint8, &[3]).unwrap_err();
    assert!(matches!(error, DecodeError::Base64(ref e) if e.offset == 3), "{error}");
}

#[test]
fn dtype_and_shape_of_the_data_must_be_the_tensors() {
    let typed = TensorData { dtype: Some(Dtype::Int32), ..data(&[0; 8]) };
    let error = decode_to_vec(&typed, Dtype::Float32, &[2]).unwrap_err().to_string();
    assert_eq!(error, "the data is int32 of shape [2], the tensor float32 of shape [2]");
    let shaped = TensorData { shape: Some(vec![1, 2]), ..data(&[0; 8]) };
    let error = decode_to_vec(&shaped, Dtype::Float32, &[2]).unwrap_err().to_string();
    assert_eq!(error, "the data is float32 of shape [1, 2], the tensor float32 of shape [2]");
}

#[test]
fn npy_files_are_checked() {
    let body = [1; 24];
    let decode = |file: &TensorData, dtype| {
        decode_to_vec(file, dtype, &[2, 3]).map_err(|error| error.to_string())
    };
    for (descr, dtype) in [("<f4", Dtype::Float32), ("<i4", Dtype::Int32), ("=u4", Dtype::Uint32)] {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 3), }}\n");
        assert_eq!(decode(&npy(&header, &body), dtype).unwrap(), body);
    }
    let float = Dtype::Float32;
    for (header, words) in [
        ("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", ">f4"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", "float32 (`<f4`)"),
        ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "Fortran"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", "[3, 2]"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "[6]"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}", "expected `'`"),
        ("{'descr': '<f4', 'shape': (2, 3)}", "`fortran_order` is missing"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, x)}", "extent"),
        ("{'descr': 'é', 'fortran_order': False, 'shape': (2, 3)}", "é"),
        ("", "expected `{`"),
    ] {
        let error = decode(&npy(header, &body), float).unwrap_err();
        assert!(error.contains(words), "{header}: {error}");
    }
    let raw = TensorData { format: DataFormat::Npy, ..data(&body) };
    assert!(decode(&raw, float).unwrap_err().contains("NUMPY"));
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
    assert!(decode(&npy(header, &body[1..]), float).unwrap_err().contains("23 bytes"));
    let mut version = npy(header, &body).data_b64.to_bytes(1000).unwrap();
    version[6] = 9;
    let version = TensorData { format: DataFormat::Npy, ..data(&version) };
    assert!(decode(&version, float).unwrap_err().contains("version 9.0"));
}

#[test]
fn npy_files_of_ours_are_read_by_an_independent_reader() {
    for (dtype, extents) in
        [(Dtype::Float32, vec![2, 3]), (Dtype::Int64, vec![5]), (Dtype::Uint8, vec![2, 3, 4])]
    {
        let elements: u64 = extents.iter().product();
        let raw = vec![1; elements as usize * dtype.size()];
        let encoding = OutputEncoding { compress: Compress::None, format: DataFormat::Npy };
        let sent = encode(raw.as_slice(), dtype, &extents, encoding).unwrap();
        let file = Blob::from_base64(sent.data_b64).to_bytes(1 << 20).unwrap();
        let header = file[10..].iter().position(|&byte| byte == b'\n').unwrap() + 11;
        assert_eq!(header % 64, 0);
        let parsed = npyz::NpyFile::new(file.as_slice()).unwrap();
        assert_eq!(parsed.shape(), extents);
        assert_eq!(parsed.len(), elements);
        match dtype {
            Dtype::Float32 => assert_eq!(parsed.into_vec::<f32>().unwrap().len(), 6),
            Dtype::Int64 => {
                assert_eq!(parsed.into_vec::<i64>().unwrap(), [0x0101_0101_0101_0101; 5]);
            }
            _ => assert_eq!(parsed.into_vec::<u8>().unwrap(), [1; 24]),
        }
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(
        rows in 1u64..40,
        columns in 1u64..40,
        dtype in proptest::sample::select(Dtype::ALL.to_vec()),
        compress in proptest::sample::select(vec![Compress::None, Compress::Zlib, Compress::Zstd]),
        format in proptest::sample::select(vec![DataFormat::Raw, DataFormat::Npy]),
        seed in any::<u8>(),
    ) {
        let size = (rows * columns) as usize * dtype.size();
        let raw: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(seed)).collect();
        let shape = [rows, columns];
        let encoding = OutputEncoding { compress, format };
        let sent = encode(raw.as_slice(), dtype, &shape, encoding).unwrap();
        prop_assert_eq!(&sent.blake3, &blake3::hash(&raw).to_hex().to_string());
        // A returned tensor without its hash can be sent again.
        let mut json = serde_json::to_value(&sent).unwrap();
        json.as_object_mut().unwrap().remove("blake3");
        let again: TensorData = serde_json::from_value(json).unwrap();
        prop_assert_eq!(decode_to_vec(&again, dtype, &shape).unwrap(), raw);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        compress in proptest::sample::select(vec![Compress::None, Compress::Zlib, Compress::Zstd]),
        format in proptest::sample::select(vec![DataFormat::Raw, DataFormat::Npy]),
    ) {
        let body = [b"\x93NUMPY\x01\x00".as_slice(), &bytes].concat();
        for bytes in [&bytes, &body] {
            let sent = TensorData { compress, format, ..data(bytes) };
            let _ = decode_to_vec(&sent, Dtype::Float16, &[3, 5]);
        }
    }
}
