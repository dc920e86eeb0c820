//! Loads from surfaces and stores to them, and textures of one and three dimensions, against values computed here.

use crate::common::{Device, Params};
use warpgauge_emulator::memory::{AddressMode, TexelObject, TexelType, Texels, Texture};
use warpgauge_emulator::{FaultKind, LaunchFault};

/// Each of 8 threads has its number in `%r1`, that minus 2 in `%r2` and `%f1`, 4 times that in `%r3`, and writes `%r4`.
fn text(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
         .visible .entry f(.param .u64 object, .param .u64 out) {{\n\
         .reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n.reg .b16 %h<9>;\n\
         ld.param.u64 %rd1, [object];\nld.param.u64 %rd2, [out];\n\
         mov.u32 %r1, %tid.x;\nadd.s32 %r2, %r1, -2;\nshl.b32 %r3, %r2, 2;\ncvt.rn.f32.s32 %f1, %r2;\n\
         mov.b32 %r4, 77;\nmov.b32 %r7, -1;\nmov.b32 %r8, 1;\n\
         {body}\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd2, %rd2, %rd3;\n\
         st.global.b32 [%rd2], %r4;\nret;\n}}\n"
    )
}

/// Two slices of two rows of four texels, 32 bytes apart. Texels hold 100 · slice + 10 · row + column.
struct Volume {
    device: Device,
    out: u64,
    base: u64,
}

fn texel(x: u32, y: u32, z: u32) -> u32 {
    100 * z + 10 * y + x
}

impl Volume {
    fn new(body: &str) -> Self {
        let device = Device::from_ptx(&text(body));
        let row = |y: u32, z: u32| (0..8).map(move |x| if x < 4 { texel(x, y, z) } else { 999 });
        let rows = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let base = device.upload(&rows.iter().flat_map(|&(y, z)| row(y, z)).collect::<Vec<_>>());
        let out = device.upload(&[0u32; 8]);
        Self { device, out, base }
    }

    fn texels(&self, dims: u8, layered: bool) -> Texels {
        let [height, depth] = match (dims, layered) {
            (1, false) => [1, 1],
            (1, true) => [1, 2],
            (2, false) => [2, 1],
            _ => [2, 2],
        };
        let texel = TexelType::U32;
        let extents = [4, height, depth];
        Texels { base: self.base, texel, channels: 1, dims, layered, extents, pitches: [32, 64] }
    }

    fn run(&self, object: TexelObject) -> Result<Vec<u32>, Box<LaunchFault>> {
        self.device.memory.add_object(5, object);
        let params = Params::default().arg(5u64).arg(self.out);
        self.device.try_run("f", [1, 1, 1], [8, 1, 1], 0, &params)?;
        Ok(self.device.download(self.out, 8))
    }

    fn surface(&self, dims: u8, layered: bool) -> Result<Vec<u32>, Box<LaunchFault>> {
        self.run(TexelObject::Surface(self.texels(dims, layered)))
    }
}

#[test]
fn loads_outside_of_a_surface_follow_their_mode() {
    let loaded = |geometry: &str, place: &str, mode: &str, dims: u8, layered: bool| {
        let load = format!("suld.b.{geometry}.b32.{mode} {{%r4}}, [%rd1, {{{place}}}];");
        Volume::new(&load).surface(dims, layered)
    };
    let ok = |geometry, place, mode, dims, layered| {
        loaded(geometry, place, mode, dims, layered).unwrap()
    };
    assert_eq!(ok("2d", "%r3, %r8", "zero", 2, false), [0, 0, 10, 11, 12, 13, 0, 0]);
    assert_eq!(ok("2d", "%r3, %r8", "clamp", 2, false), [10, 10, 10, 11, 12, 13, 13, 13]);
    assert_eq!(ok("2d", "%r3, %r7", "clamp", 2, false), [0, 0, 0, 1, 2, 3, 3, 3], "row -1");
    assert_eq!(ok("2d", "%r3, %r7", "zero", 2, false), [0; 8], "row -1");
    assert_eq!(ok("1d", "%r3", "zero", 1, false), [0, 0, 0, 1, 2, 3, 0, 0]);
    let slice = "%r3, %r8, %r8, %r8";
    assert_eq!(ok("3d", slice, "clamp", 3, false), [110, 110, 110, 111, 112, 113, 113, 113]);
    // The layer comes first.
    let layer = "%r8, %r3, %r1, %r1";
    assert_eq!(ok("a2d", layer, "zero", 2, true), [0, 0, 0, 0, 0, 0, 0, 0], "rows 2 to 5");
    assert_eq!(ok("a2d", layer, "clamp", 2, true), [100, 110, 110, 111, 112, 113, 113, 113]);
    assert_eq!(ok("a1d", "%r8, %r3", "zero", 1, true), [0, 0, 100, 101, 102, 103, 0, 0]);

    let trap = loaded("2d", "%r3, %r8", "trap", 2, false).unwrap_err();
    assert_eq!(trap.kind, FaultKind::IllegalAddress);
    assert!(trap.message.contains("at byte -8 of row 1"), "{}", trap.message);
    let trap = loaded("2d", "%r8, %r1", "clamp", 2, false).unwrap_err();
    assert_eq!(trap.kind, FaultKind::MisalignedAddress);
    assert!(trap.message.contains("in bytes"), "{}", trap.message);
    let other = loaded("2d", "%r3, %r8", "zero", 3, false).unwrap_err();
    assert!(other.message.contains("three dimensions by two coordinates"), "{}", other.message);
    let layers = loaded("2d", "%r3, %r8", "zero", 2, true).unwrap_err();
    assert!(layers.message.contains("dimensions and layers by"), "{}", layers.message);
}

#[test]
fn stores_reach_their_texels_alone() {
    let stored = |store: &str, dims: u8, layered: bool| {
        let volume = Volume::new(store);
        volume.surface(dims, layered).map(|_| volume.device.download::<u32>(volume.base, 32))
    };
    let initial = stored("", 2, false).unwrap();
    let after = |changes: &[(usize, u32)]| {
        let mut all = initial.clone();
        changes.iter().for_each(|(at, value)| all[*at] = *value);
        all
    };
    // Row 1 begins at element 8, slice 1 at element 16.
    let zero = "sust.b.2d.b32.zero [%rd1, {%r3, %r8}], {%r1};";
    assert_eq!(stored(zero, 2, false).unwrap(), after(&[(8, 2), (9, 3), (10, 4), (11, 5)]));
    let pair =
        "shl.b32 %r5, %r3, 1;\nsust.b.3d.v2.b32.zero [%rd1, {%r5, %r8, %r8, %r8}], {%r1, %r2};";
    let pairs = after(&[(24, 2), (25, 0), (26, 3), (27, 1)]);
    assert_eq!(stored(pair, 3, false).unwrap(), pairs);
    let layer = "sust.b.a1d.b32.zero [%rd1, {%r8, %r3}], {%r1};";
    assert_eq!(stored(layer, 1, true).unwrap(), after(&[(16, 2), (17, 3), (18, 4), (19, 5)]));
    let wide = "cvt.u64.u32 %rd4, %r1;\nshl.b32 %r5, %r3, 1;\nsust.b.2d.b64.zero [%rd1, {%r5, %r8}], {%rd4};";
    assert_eq!(stored(wide, 2, false).unwrap(), after(&[(8, 2), (9, 0), (10, 3), (11, 0)]));
    let bytes = "cvt.u16.u32 %h1, %r1;\nsust.b.2d.b8.zero [%rd1, {%r2, %r8}], {%h1};";
    let found = stored(bytes, 2, false).unwrap();
    assert_eq!(found[8..10], [0x05040302, 0x00000706], "six bytes, the others as they were");
    let trap = stored(&zero.replace("zero", "trap"), 2, false).unwrap_err();
    assert!(trap.message.contains("stores 4 bytes"), "{}", trap.message);
    // A store of 16 bytes fits a row of 16 bytes at one place.
    let clamp = "sust.b.2d.v4.b32.clamp [%rd1, {%r3, %r8}], {%r7, %r7, %r7, %r7};";
    let all = [8, 9, 10, 11].map(|at| (at, u32::MAX));
    assert_eq!(stored(&clamp.replace("%r3", "%r7"), 2, false).unwrap(), after(&all));
}

#[test]
fn objects_are_what_they_were_made_as() {
    let load = "suld.b.2d.b32.zero {%r4}, [%rd1, {%r3, %r8}];";
    let volume = Volume::new(load);
    let texels = volume.texels(2, false);
    let texture = Texture {
        texels,
        is_linear_memory: false,
        modes: [AddressMode::Clamp; 3],
        linear: false,
        normalized: false,
        as_integer: true,
    };
    let error = volume.run(TexelObject::Texture(texture)).unwrap_err();
    assert!(error.message.contains("surface 0x5, which does not exist"), "{}", error.message);
    let read = "tex.2d.v4.u32.f32 {%r4, %r5, %r6, %r7}, [%rd1, {%f1, %f1}];";
    let error = Volume::new(read).surface(2, false).unwrap_err();
    assert!(error.message.contains("texture 0x5, which does not exist"), "{}", error.message);
    // A surface whose memory is gone is no surface any more.
    let gone = Volume::new(load);
    gone.device.memory.free(gone.base).unwrap();
    assert_eq!(gone.surface(2, false).unwrap_err().kind, FaultKind::IllegalAddress);
}

#[test]
fn textures_of_one_and_three_dimensions_and_of_layers_are_read() {
    let read = |read: &str, dims: u8, layered: bool, change: &dyn Fn(&mut Texture)| {
        let volume =
            Volume::new(&format!("mov.f32 %f2, 0f3FC00000;\nmov.f32 %f3, 0f3F800000;\n{read}"));
        let texels = volume.texels(dims, layered);
        let mut texture = Texture {
            texels: Texels { texel: TexelType::F32, ..texels },
            is_linear_memory: false,
            modes: [AddressMode::Clamp; 3],
            linear: false,
            normalized: false,
            as_integer: false,
        };
        let floats = volume.device.download::<u32>(volume.base, 32);
        let floats = floats.iter().map(|value| *value as f32).collect::<Vec<_>>();
        texture.texels.base = volume.device.upload(&floats);
        change(&mut texture);
        let bits = volume.run(TexelObject::Texture(texture)).unwrap();
        bits.into_iter().map(f32::from_bits).collect::<Vec<_>>()
    };
    let results = "{%r4, %r5, %r6, %r7}";
    // Row 1 and slice 1 at point filtering; linear filtering lies halfway between slices 0 and 1 at z = 1.
    let volume = format!("tex.3d.v4.f32.f32 {results}, [%rd1, {{%f1, %f2, %f3, %f3}}];");
    let point = read(&volume, 3, false, &|_| ());
    assert_eq!(point, [110.0, 110.0, 110.0, 111.0, 112.0, 113.0, 113.0, 113.0]);
    let linear = read(&volume, 3, false, &|texture| texture.linear = true);
    assert_eq!(linear, [60.0, 60.0, 60.0, 60.5, 61.5, 62.5, 63.0, 63.0]);
    let border = read(&volume, 3, false, &|texture| texture.modes = [AddressMode::Border; 3]);
    assert_eq!(border, [0.0, 0.0, 110.0, 111.0, 112.0, 113.0, 0.0, 0.0]);
    // z = 1 is the end of normalized coordinates, where a mirrored texture turns round and a wrapped one begins again.
    let turned = |mode| {
        read(&volume, 3, false, &move |texture| {
            (texture.normalized, texture.modes) = (true, [mode; 3]);
        })[2]
    };
    assert_eq!(turned(AddressMode::Wrap), 10.0);
    assert_eq!(turned(AddressMode::Mirror), 100.0);
    let line = format!("tex.1d.v4.f32.f32 {results}, [%rd1, {{%f1}}];");
    let linear = read(&line, 1, false, &|texture| texture.linear = true);
    assert_eq!(linear, [0.0, 0.0, 0.0, 0.5, 1.5, 2.5, 3.0, 3.0]);
    // Nothing is interpolated between layers, and the last one is read beyond it.
    let layer = format!("tex.a2d.v4.f32.f32 {results}, [%rd1, {{%r1, %f1, %f2, %f2}}];");
    let linear = read(&layer, 2, true, &|texture| texture.linear = true);
    assert_eq!(linear, [10.0, 110.0, 110.0, 110.5, 111.5, 112.5, 113.0, 113.0]);
}
