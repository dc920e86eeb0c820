//! Reads of textures, against values computed here.

use crate::common::{Device, Params};
use warpgauge_emulator::memory::{AddressMode, TexelObject, TexelType, Texels, Texture};
use warpgauge_emulator::{FaultKind, LaunchFault};

/// Each thread reads the texel at its own number and a constant row.
fn text(read: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
         .visible .entry f(.param .u64 texture, .param .u64 out) {{\n\
         .reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .f32 %f<8>;\n\
         ld.param.u64 %rd1, [texture];\nld.param.u64 %rd2, [out];\n\
         mov.u32 %r1, %tid.x;\nadd.s32 %r2, %r1, -2;\ncvt.rn.f32.s32 %f1, %r2;\nmov.f32 %f2, 0f3FC00000;\n\
         {read}\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd2, %rd2, %rd3;\n\
         st.global.f32 [%rd2], %f4;\nret;\n}}\n"
    )
}

const SAMPLE: &str = "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}];";
/// The same with a level, with gradients, and at the base level.
const LEVELS: [&str; 3] = [
    "tex.level.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}], %f1;",
    "tex.grad.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}], {%f1, %f2}, {%f2, 0f3F800000};",
    "tex.base.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}];",
];
const FETCH: &str = "tex.1d.v4.f32.s32 {%f4, %f5, %f6, %f7}, [%rd1, {%r2}];";

fn pitched(base: u64) -> Texture {
    let texels = Texels {
        base,
        texel: TexelType::F32,
        channels: 1,
        dims: 2,
        layered: false,
        extents: [4, 2, 1],
        pitches: [32, 64],
    };
    Texture {
        texels,
        is_linear_memory: false,
        modes: [AddressMode::Clamp; 3],
        linear: false,
        normalized: false,
        as_integer: false,
    }
}

/// What 8 threads read of two rows of 4 texels, 0 to 3 and 10 to 13.
fn read(read: &str, change: impl Fn(&mut Texture)) -> Result<Vec<f32>, Box<LaunchFault>> {
    let device = Device::from_ptx(&text(read));
    let row = |first: f32| (0..8).map(move |x| if x < 4 { first + x as f32 } else { 99.0 });
    let texels = device.upload(&row(0.0).chain(row(10.0)).collect::<Vec<_>>());
    let out = device.upload(&[-1f32; 8]);
    let mut texture = pitched(texels);
    change(&mut texture);
    device.memory.add_object(77, TexelObject::Texture(texture));
    let params = Params::default().arg(77u64).arg(out);
    device.try_run("f", [1, 1, 1], [8, 1, 1], 0, &params)?;
    Ok(device.download(out, 8))
}

#[test]
fn texels_are_read_and_interpolated() {
    let sampled = |change: &dyn Fn(&mut Texture)| read(SAMPLE, change).unwrap();
    assert_eq!(sampled(&|_| ()), [10.0, 10.0, 10.0, 11.0, 12.0, 13.0, 13.0, 13.0]);
    let border = sampled(&|texture| texture.modes = [AddressMode::Border; 3]);
    assert_eq!(border, [0.0, 0.0, 10.0, 11.0, 12.0, 13.0, 0.0, 0.0]);
    // Half a texel to the left of each centre.
    let linear = sampled(&|texture| texture.linear = true);
    assert_eq!(linear, [10.0, 10.0, 10.0, 10.5, 11.5, 12.5, 13.0, 13.0]);
    let fetched =
        read(FETCH, |texture| (texture.texels.dims, texture.is_linear_memory) = (1, true)).unwrap();
    assert_eq!(fetched, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
}

#[test]
fn every_level_is_the_only_one() {
    for linear in [false, true] {
        let change = |texture: &mut Texture| texture.linear = linear;
        let plain = read(SAMPLE, change).unwrap();
        for level in LEVELS {
            assert_eq!(read(level, change).unwrap(), plain, "{level}");
        }
    }
}

#[test]
fn wrong_reads_are_faults() {
    // The rows end with the allocation, and not where the texture says.
    let beyond = read(SAMPLE, |texture| texture.texels.pitches = [64, 128]).unwrap_err();
    assert_eq!(beyond.kind, FaultKind::IllegalAddress, "{}", beyond.message);
    let flat = read(FETCH, |_| ()).unwrap_err();
    assert!(flat.message.contains("two dimensions by one coordinate"), "{}", flat.message);
    let device = Device::from_ptx(&text(SAMPLE));
    let params = Params::default().arg(5u64).arg(0u64);
    let unknown = device.try_run("f", [1, 1, 1], [8, 1, 1], 0, &params).unwrap_err();
    assert!(unknown.message.contains("0x5, which does not exist"), "{}", unknown.message);
}
