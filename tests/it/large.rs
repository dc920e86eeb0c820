//! The device kernels that verify large results agree with the host about the same elements.

use warpgauge_device::support::{NearTolerance, Support};
use warpgauge_device::{DeviceBuffer, Stream};
use warpgauge_tensor::Dtype;
use warpgauge_torch::TensorAt;
use warpgauge_validate::{CountedErrors, OutlierTolerance, ResolvedTolerance, ToleranceBasis};

use crate::locked::{driver, own_kernels};
use crate::server::Server;

/// Elements of a type, some of which differ from those of another seed, and some of which are not finite.
fn elements(dtype: Dtype, count: usize, seed: u64) -> Vec<u8> {
    let init =
        serde_json::json!({"kind": if dtype.is_float() { "randn" } else { "randint" }, "seed": 1});
    let init = serde_json::from_value(init).unwrap();
    let mut bytes = vec![0; count * dtype.size()];
    warpgauge_tensor::fill(&init, (dtype, &[]), "x", 0, &mut bytes).unwrap();
    let special = match dtype {
        Dtype::Float32 => {
            Some([f32::NAN.to_le_bytes().to_vec(), f32::INFINITY.to_le_bytes().to_vec()])
        }
        Dtype::Float64 => {
            Some([f64::NAN.to_le_bytes().to_vec(), f64::INFINITY.to_le_bytes().to_vec()])
        }
        _ => None,
    };
    for (place, value) in special.into_iter().flatten().enumerate() {
        for at in [10 + place, 500 + place * (1 + seed as usize)] {
            bytes[at * dtype.size()..][..dtype.size()].copy_from_slice(&value);
        }
    }
    for at in (0..count).filter(|at| seed > 0 && at % 97 == 5) {
        bytes[at * dtype.size()] ^= if at % 2 == 0 { 1 } else { 3 };
    }
    bytes
}

#[test]
fn the_device_counts_what_the_host_does() {
    let server = Server::start();
    let image = own_kernels(&server);
    let directory = tempfile::tempdir().unwrap();
    let driver = driver(directory.path());
    let (info, context) = (driver.device_info(0).unwrap(), driver.open(0).unwrap());
    let stream = Stream::new(&context).unwrap();
    let support = Support::load(&context, &image, &info).unwrap();
    let on_device = |bytes: &[u8]| {
        let memory = DeviceBuffer::new(&context, bytes.len() as u64, "elements").unwrap();
        memory.copy_from_host(0, bytes, &stream).unwrap();
        memory
    };
    let types = [
        Dtype::Float64,
        Dtype::Float32,
        Dtype::Float16,
        Dtype::Bfloat16,
        Dtype::Int32,
        Dtype::Uint8,
    ];
    for dtype in types {
        assert!(Support::compares(dtype));
        let shape = [71, 100];
        let (expected, actual) = (elements(dtype, 7100, 0), elements(dtype, 7100, 1));
        let memory = [on_device(&actual), on_device(&expected)];
        for outliers in [None, Some(OutlierTolerance { share: 0.5, atol: 1e30 })] {
            let tolerance = ResolvedTolerance {
                atol: 1e-6,
                rtol: 1e-7,
                required_matched_ratio: 1.0,
                allow_non_finite: true,
                basis: ToleranceBasis::ReferenceNoise,
                computes_in: None,
                outliers,
            };
            let near = NearTolerance { atol: 1e-6, rtol: 1e-7, allow_non_finite: true };
            let further = outliers.map_or(1e-6, |outliers| outliers.atol);
            let at = (memory[0].address(), memory[1].address());
            let found =
                support.measure(&context, at, (dtype, 7100), (near, further), &stream).unwrap();
            let mut whole =
                warpgauge_validate::compare(dtype, &shape, &actual, &expected, None, &tolerance);
            assert!(whole.matched < whole.elements, "{dtype}: nothing differs");
            let [row, column] = whole.first_mismatches[0].index[..] else { panic!("two axes") };
            assert_eq!(found.first, Some(100 * row + column), "{dtype}");
            let counted = CountedErrors {
                elements: 7100,
                pairs: found.pairs,
                matched: found.matched,
                near: found.near,
                non_finite: found.non_finite,
                non_finite_matched: found.non_finite_matched,
                max_abs: found.max_abs,
                max_rel: found.max_rel,
                sum: found.sum,
                sum_of_squares: found.sum_of_squares,
            };
            let examples = whole.first_mismatches.clone();
            let mut counted = counted.compared(&tolerance, examples);
            // The order of the sums is another one.
            for (one, other) in [
                (counted.mean_abs_error, whole.mean_abs_error),
                (counted.rms_error, whole.rms_error),
            ] {
                assert!((one - other).abs() <= 1e-12 * other, "{dtype}: {one} {other}");
            }
            (counted.mean_abs_error, counted.rms_error) = (whole.mean_abs_error, whole.rms_error);
            // Counts do not say where the mismatches lie.
            (whole.ulp, whole.extent, whole.pattern) = (None, counted.extent.clone(), None);
            whole.mismatch_map = None;
            assert_eq!(counted, whole, "{dtype}");
        }
    }

    // Elements that do not lie side by side.
    let held = elements(Dtype::Int32, 4000, 0);
    let memory = on_device(&held);
    for (shape, strides) in [
        (vec![20, 30], vec![1, 20]),
        (vec![2, 3, 5, 7], vec![105, 1, 21, 3]),
        (vec![6, 9], vec![0, 3]),
        (vec![13, 1, 4], vec![17, 2, 4]),
        (vec![], vec![]),
        (vec![3, 0], vec![1, 1]),
    ] {
        let tensor = TensorAt { address: 0, block: None, dtype: Dtype::Int32, shape, strides };
        let expected = tensor.in_order(&held).unwrap();
        let out = DeviceBuffer::new(&context, expected.len().max(1) as u64, "elements").unwrap();
        let lies = (&tensor.shape[..], &tensor.strides[..]);
        assert!(support.gather((memory.address(), out.address()), lies, 4, &stream).unwrap());
        let mut gathered = vec![0; expected.len()];
        out.copy_to_host(0, &mut gathered, &stream).unwrap();
        assert_eq!(gathered, expected, "{tensor:?}");
    }
}
