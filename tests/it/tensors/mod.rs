//! Shared tensors in the form of the GPU Tensor Server: uploaded once, opened by other processes,
//! and changed in place for all of them.

mod bad_input;
mod files;
mod holder;
mod kept;
mod lifetime;
mod named;
mod on_device;
mod share;

use serde_json::{Value, json};

use crate::contracts::base64;
use crate::server::{Answer, Server};

const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=B");

/// A form with a file and other fields.
fn form(file: &[u8], file_name: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, value) in fields {
        let head = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        form.extend(head.bytes().chain(value.bytes()).chain(*b"\r\n"));
    }
    let head = format!(
        "--B\r\nContent-Disposition: form-data; name=\"wav_file\"; filename=\"{file_name}\"\r\n\r\n"
    );
    form.extend(head.bytes().chain(file.iter().copied()).chain(*b"\r\n--B--\r\n"));
    form
}

fn upload(server: &Server, file: &[u8], fields: &[(&str, &str)]) -> Answer {
    server.post("/tensors", &[FORM], &form(file, "upload", fields))
}

/// An upload that must succeed; its id and what is said of it.
fn uploaded(server: &Server, file: &[u8], fields: &[(&str, &str)]) -> (String, Value) {
    let answer = upload(server, file, fields);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    (answer.json["tensor_id"].as_str().unwrap().to_owned(), answer.json)
}

/// Floats on a device.
fn array(server: &Server, cuda_device: i32, values: &[f32], more: Value) -> Answer {
    let mut body = json!({"cuda_device": cuda_device, "data_b64": base64(&bytes_of(values))});
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    server.post_json("/tensors/from-array", &body)
}

fn held(server: &Server, cuda_device: i32, values: &[f32]) -> String {
    let answer = array(server, cuda_device, values, json!({}));
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer.json["tensor_id"].as_str().unwrap().to_owned()
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    let (whole, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    whole.iter().map(|four| f32::from_le_bytes(*four)).collect()
}

/// The content of a tensor in some form.
fn data(server: &Server, id: &str, format: &str) -> Vec<u8> {
    let url = format!("{}/tensors/{id}/data?format={format}", server.url);
    let mut answer = ureq::get(url).call().unwrap();
    answer.body_mut().with_config().limit(512 << 20).read_to_vec().unwrap()
}

fn floats(server: &Server, id: &str) -> Vec<f32> {
    floats_of(&data(server, id, "raw"))
}

/// A WAV file with a format chunk and samples.
fn wav(tag: u16, bits: u16, channels: u16, rate: u32, samples: &[u8]) -> Vec<u8> {
    let frame = channels * bits.div_ceil(8);
    let mut format = Vec::new();
    format.extend(tag.to_le_bytes());
    format.extend(channels.to_le_bytes());
    format.extend(rate.to_le_bytes());
    format.extend((rate * u32::from(frame)).to_le_bytes());
    format.extend(frame.to_le_bytes());
    format.extend(bits.to_le_bytes());
    if tag == 0xFFFE {
        format.extend(22u16.to_le_bytes());
        format.extend(bits.to_le_bytes());
        // Any speakers; then PCM's identifier.
        format.extend(0u32.to_le_bytes());
        format.extend([1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]);
    }
    let mut file = b"RIFF".to_vec();
    file.extend((4 + 8 + format.len() as u32 + 8 + samples.len() as u32).to_le_bytes());
    file.extend(*b"WAVEfmt ");
    file.extend((format.len() as u32).to_le_bytes());
    file.extend(format);
    file.extend(*b"data");
    file.extend((samples.len() as u32).to_le_bytes());
    file.extend(samples);
    file
}

/// Sound of one channel with 16 bits.
fn mono(samples: &[i16]) -> Vec<u8> {
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    wav(1, 16, 1, 16_000, &bytes)
}

/// A `.npy` file with a header of one's own making.
fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes().chain(elements.iter().copied()));
    file
}

/// A `.safetensors` file with a header of one's own making.
fn safetensors(header: &Value, elements: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes().chain(elements.iter().copied()));
    file
}
