//! Tensors from files, and files from tensors.

use serde_json::json;

use super::*;

#[test]
fn sound_of_every_width_is_read() {
    let server = Server::start();
    let cases = [
        (wav(1, 8, 1, 8000, &[0, 64, 128, 192]), vec![-1.0, -0.5, 0.0, 0.5]),
        (mono(&[-32768, 0, 16384]), vec![-1.0, 0.0, 0.5]),
        (wav(1, 24, 1, 16_000, &[0, 0, 0x80, 0, 0, 0x40]), vec![-1.0, 0.5]),
        (wav(1, 32, 1, 16_000, &[0, 0, 0, 0x80, 0, 0, 0, 0x40]), vec![-1.0, 0.5]),
        (wav(3, 32, 1, 48_000, &bytes_of(&[0.25, -3.5])), vec![0.25, -3.5]),
        (wav(0xFFFE, 16, 1, 16_000, &[0, 0x40, 0, 0x80]), vec![0.5, -1.0]),
    ];
    for (file, expected) in cases {
        let (id, told) = uploaded(&server, &file, &[("cuda_device", "-1")]);
        assert_eq!(floats(&server, &id), expected);
        assert_eq!(told["shape"], json!([expected.len()]));
        assert_eq!(told["dtype"], "torch.float32");
    }
    // Channels lie one after the other, and come interleaved; more of them than one buffer takes.
    let frames = 40_000;
    let samples: Vec<u8> = (0..frames)
        .flat_map(|at| [(at % 100) as i16, -(at % 100) as i16])
        .flat_map(i16::to_le_bytes)
        .collect();
    let (id, told) = uploaded(&server, &wav(1, 16, 2, 44_100, &samples), &[("cuda_device", "0")]);
    assert_eq!((&told["shape"], &told["sample_rate"]), (&json!([2, frames]), &json!(44_100)));
    let planes = floats(&server, &id);
    for at in 0..frames as usize {
        let expected = (at % 100) as f32 / 32768.0;
        assert_eq!((planes[at], planes[frames as usize + at]), (expected, -expected), "{at}");
    }
}

/// Field names and values of the reference's README.
#[test]
fn the_answers_are_those_of_the_gpu_tensor_server() {
    let server = Server::start();
    let samples: Vec<i16> = (0..32_000).map(|at| (at % 2000) as i16).collect();
    let (id, told) = uploaded(&server, &mono(&samples), &[("cuda_device", "0")]);
    assert_eq!(told["shape"], json!([32_000]));
    assert_eq!((&told["device"], &told["sample_rate"]), (&json!("cuda:0"), &json!(16_000)));
    assert_eq!(told["message"], "Tensor loaded successfully on cuda:0");
    let found = server.get(&format!("/tensors/{id}")).json;
    for field in ["tensor_id", "shape", "dtype", "device", "sample_rate"] {
        assert_eq!(found[field], told[field], "{field}");
    }
    let handle = server.get(&format!("/tensors/{id}/handle")).json;
    for (field, expected) in [
        ("tensor_id", json!(id)),
        ("shape", json!([32_000])),
        ("dtype", json!("torch.float32")),
        ("device", json!("cuda:0")),
        ("element_size", json!(4)),
        ("numel", json!(32_000)),
        ("sample_rate", json!(16_000)),
        ("kind", json!("cuda_ipc")),
        ("strides", json!([1])),
    ] {
        assert_eq!(handle[field], expected, "{field}");
    }
    assert!(handle["data_ptr"].as_u64().unwrap() > 0);
    for field in ["ipc_handle", "event_handle"] {
        let bytes = crate::contracts::from_base64(handle[field].as_str().unwrap());
        assert_eq!(bytes.len(), 64, "{field}");
    }
    assert!(handle["device_uuid"].as_str().unwrap().starts_with("GPU-"), "{handle}");
    let list = server.get("/tensors").json;
    assert_eq!((&list["count"], &list["tensors"][0]["tensor_id"]), (&json!(1), &json!(id)));
    assert_eq!(server.get("/cuda/info").status, 200);
}

#[test]
fn arrays_come_back_in_every_form() {
    let server = Server::start();
    let values: Vec<f32> = (0..6).map(|at| at as f32 / 2.0).collect();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    let (from_npy, told) = uploaded(&server, &npy(header, &bytes_of(&values)), &[]);
    assert_eq!((&told["shape"], &told["sample_rate"]), (&json!([2, 3]), &json!(null)));
    let file = data(&server, &from_npy, "npy");
    assert!(file.starts_with(b"\x93NUMPY") && file.ends_with(&bytes_of(&values)));
    // What went out comes in again.
    let (again, _) = uploaded(&server, &file, &[("cuda_device", "cpu")]);
    assert_eq!(floats(&server, &again), values);
    let file = data(&server, &from_npy, "safetensors");
    let (again, told) = uploaded(&server, &file, &[]);
    assert_eq!((&told["shape"], floats(&server, &again)), (&json!([2, 3]), values.clone()));

    let several = safetensors(
        &json!({
            "__metadata__": {"format": "pt"},
            "weight": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
            "../bias": {"dtype": "I64", "shape": [], "data_offsets": [4, 12]},
        }),
        &[1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0],
    );
    let (id, told) = uploaded(&server, &several, &[("tensor", "weight")]);
    assert_eq!(
        (&told["dtype"], data(&server, &id, "raw")),
        (&json!("torch.bfloat16"), vec![1, 2, 3, 4])
    );
    let (id, told) = uploaded(&server, &several, &[("tensor", "../bias")]);
    assert_eq!((&told["shape"], data(&server, &id, "raw")[0]), (&json!([]), 5));
    let unnamed = upload(&server, &several, &[]);
    assert!(
        unnamed.json["error"].as_str().unwrap().contains("name one in `tensor`"),
        "{}",
        unnamed.json
    );

    let body = json!({
        "data_b64": base64(&[1, 0, 2, 0]), "dtype": "torch.int16", "shape": [1, 2], "cuda_device": -1,
    });
    let told = server.post_json("/tensors/from-array", &body).json;
    assert_eq!((&told["dtype"], &told["device"]), (&json!("torch.int16"), &json!("cpu")), "{told}");
}

/// The format of safetensors counts numbers of four bits, and a tensor bytes of two.
#[test]
fn packed_numbers_scales_and_complex_ones_go_out_and_come_in_again() {
    let server = Server::start();
    let bytes = [0x21, 0xE7, 0x08, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    for (dtype, shape, name, written) in [
        ("torch.float4_e2m1fn_x2", json!([4, 4]), "F4", json!([4, 8])),
        ("torch.float8_e8m0fnu", json!([16]), "F8_E8M0", json!([16])),
        ("torch.complex64", json!([2]), "C64", json!([2])),
    ] {
        let body =
            json!({"data_b64": base64(&bytes), "dtype": dtype, "shape": shape, "cuda_device": -1});
        let told = server.post_json("/tensors/from-array", &body).json;
        assert_eq!(told["dtype"], dtype, "{told}");
        let file = data(&server, told["tensor_id"].as_str().unwrap(), "safetensors");
        let header: Value = serde_json::from_slice(&file[8..file.len() - 16]).unwrap();
        assert_eq!(
            (&header["tensor"]["dtype"], &header["tensor"]["shape"]),
            (&json!(name), &written)
        );
        let (again, told) = uploaded(&server, &file, &[]);
        assert_eq!((&told["dtype"], &told["shape"]), (&json!(dtype), &shape));
        assert_eq!(data(&server, &again, "raw"), bytes);
    }
    for dtype in ["int4x2", "complex128"] {
        let body = json!({"data_b64": base64(&bytes), "dtype": dtype, "cuda_device": -1});
        let told = server.post_json("/tensors/from-array", &body).json;
        let path =
            format!("/tensors/{}/data?format=safetensors", told["tensor_id"].as_str().unwrap());
        let answer = server.get(&path);
        assert_eq!(
            (answer.status, &answer.json["path"]),
            (400, &json!("format")),
            "{}",
            answer.text
        );
        assert!(answer.text.contains(dtype), "{}", answer.text);
    }
}

/// More than one frame between the processes.
#[test]
fn large_tensors_come_back_whole() {
    let server = Server::start();
    let values: Vec<f32> = (0..3 << 20).map(|at| at as f32).collect();
    for device in [0, -1] {
        let id = held(&server, device, &values);
        assert!(floats(&server, &id) == values, "device {device}");
    }
}

/// A form is on the disk while it is read, and what it holds takes no memory of the server.
#[test]
fn a_large_upload_takes_little_of_the_servers_memory() {
    let server = Server::start();
    held(&server, -1, &[1.0]);
    let elements = vec![7; 80 << 20];
    let header =
        format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}\n", 80 << 20);
    let file = npy(&header, &elements);
    let before = peak_memory_mib(server.pid());
    let (id, said) = uploaded(&server, &file, &[("cuda_device", "-1")]);
    let after = peak_memory_mib(server.pid());
    assert_eq!(said["nbytes"], 80 << 20);
    assert!(after < before + 40.0, "{before} MiB, then {after} MiB");
    assert!(data(&server, &id, "raw") == elements);
    // What is no form at all is not gathered in the hope of one.
    let endless = [b"--B\r\nContent-Disposition: form-data".as_slice(), &elements].concat();
    let refused = server.post("/tensors", &[FORM], &endless);
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("head of a field"), "{}", refused.text);
    let after = peak_memory_mib(server.pid());
    assert!(after < before + 40.0, "{before} MiB, then {after} MiB");
}

/// Largest resident memory of a process so far.
fn peak_memory_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap() / 1024.0
}
