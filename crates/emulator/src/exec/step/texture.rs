//! Reads of textures.

use super::access::{Kind, Target, access};
use super::at::At;
use super::memory;
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Where, Worker, fault};
use crate::ir::{Inst, Tex};
use crate::memory::{TexelObject, TexelType, Texels, Texture};
use crate::ptx::Space;

type Done = Result<(), Box<LaunchFault>>;

/// Four register values for each lane: the result of a read.
type Results = [[u32; 4]; 32];

/// Register values of all lanes, for the layer and the coordinates.
type Coordinates = Vec<[u32; 32]>;

/// One texel for each lane, and its weight. `None` means a texel that is outside the texture, or on
/// which no result depends.
struct Corner {
    texels: [Option<[u64; 3]>; 32],
    weights: [f32; 32],
}

/// Executes `tex`. Lanes may refer to different textures.
pub(super) fn read(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    tex: Tex,
) -> Done {
    let code = worker.grid.code;
    let regs = &warp.frames[at.frame].regs;
    let handles = *regs.s64(&code.consts, inst.a);
    let coordinates = coordinates(worker, warp, at, inst);
    let mut left = at.active;
    while left != 0 {
        let (handle, here) = next_object(&mut left, &handles, at);
        let texture = match object(worker, handle) {
            Some(TexelObject::Texture(texture)) => texture,
            _ => return Err(unknown(worker, cta, warp, &here, ("texture", handle))),
        };
        if let Some(why) = unfit(&texture, tex) {
            return Err(refused(worker, cta, warp, &here, FaultKind::Unsupported, &why));
        }
        let results = match tex.gathered {
            Some(channel) => gathered(worker, cta, warp, &here, (&texture, channel), &coordinates)?,
            None => sampled(worker, cta, warp, &here, (&texture, tex), &coordinates)?,
        };
        let regs = &mut warp.frames[at.frame].regs;
        for (channel, reg) in code.lists[inst.s as usize].iter().enumerate() {
            regs.put32(*reg, &results.map(|lane| lane[channel]), here.active);
        }
    }
    Ok(())
}

/// Returns the layer and the coordinates of an instruction.
pub(super) fn coordinates(worker: &Worker<'_>, warp: &Warp, at: &At, inst: &Inst) -> Coordinates {
    let code = worker.grid.code;
    let regs = &warp.frames[at.frame].regs;
    code.lists[inst.imm as usize].iter().map(|reg| *regs.s32(&code.consts, *reg)).collect()
}

/// Removes from `left` the lanes that refer to the same object as its first lane. Returns the
/// handle and these lanes.
pub(super) fn next_object(left: &mut u32, handles: &[u64; 32], at: &At) -> (u64, At) {
    let handle = handles[left.trailing_zeros() as usize];
    let same = (0..32).fold(0, |m, l| m | u32::from(handles[l] == handle) << l) & *left;
    *left &= !same;
    (handle, At { active: same, ..*at })
}

/// Returns the texture or surface that a handle refers to.
pub(super) fn object(worker: &Worker<'_>, handle: u64) -> Option<TexelObject> {
    worker.grid.table.objects.get(&handle).copied()
}

pub(super) fn unknown(
    worker: &Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &At,
    (what, handle): (&str, u64),
) -> Box<LaunchFault> {
    let text = format!("uses the {what} {handle:#x}, which does not exist");
    refused(worker, cta, warp, at, FaultKind::IllegalAddress, &text)
}

/// Returns the reason why an instruction cannot read a texture, or `None` if it can.
fn unfit(texture: &Texture, tex: Tex) -> Option<String> {
    let Texels { dims, layered, .. } = texture.texels;
    let fits = (dims, layered) == (tex.dims, tex.layered);
    if texture.is_linear_memory {
        return match (fits, tex.integral) {
            (true, true) => None,
            (true, false) => Some(
                "reads a texture of linear memory by a floating-point coordinate: use tex1Dfetch, or a texture of an array with \
                 tex1D"
                    .to_owned(),
            ),
            (false, _) => {
                Some(format!("reads a texture of linear memory by {}", by(tex.dims, tex.layered)))
            }
        };
    }
    (!fits).then(|| mismatch("reads a texture", (dims, layered), (tex.dims, tex.layered)))
}

/// Describes an access whose coordinates do not match those of its texture or surface.
pub(super) fn mismatch(what: &str, (dims, layered): (u8, bool), used: (u8, bool)) -> String {
    let layers = if layered { " and layers" } else { "" };
    let dimensions = ["one dimension", "two dimensions", "three dimensions"];
    let dimensions = dimensions[usize::from(dims.clamp(1, 3) - 1)];
    format!("{what} of {dimensions}{layers} by {}", by(used.0, used.1))
}

fn by(dims: u8, layered: bool) -> String {
    let names = ["one coordinate", "two coordinates", "three coordinates"];
    let layer = if layered { " and a layer" } else { "" };
    format!("{}{layer}", names[usize::from(dims.clamp(1, 3) - 1)])
}

pub(super) fn refused(
    worker: &Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &At,
    kind: FaultKind,
    what: &str,
) -> Box<LaunchFault> {
    let who = Where::new(worker.grid, cta.id, warp, at.active.trailing_zeros(), at.pc);
    fault(kind, format!("{} {what}{}", who.who(), who.place()))
}

/// Returns the results of the active lanes.
fn sampled(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    (texture, tex): (&Texture, Tex),
    coordinates: &Coordinates,
) -> Result<Results, Box<LaunchFault>> {
    let mut results = [[0; 4]; 32];
    let corners = corners(texture, tex, at, coordinates);
    let interpolates = !texture.is_linear_memory && texture.linear;
    let mut sums = [[0f32; 4]; 32];
    for corner in &corners {
        let values = texels(worker, cta, warp, at, texture, corner)?;
        for lane in 0..32 {
            for channel in 0..4 {
                match interpolates {
                    true => {
                        let value = f32::from_bits(values[lane][channel]);
                        if corner.weights[lane] != 0.0 {
                            sums[lane][channel] += corner.weights[lane] * value;
                        }
                    }
                    false => results[lane][channel] = values[lane][channel],
                }
            }
        }
    }
    if interpolates {
        results = sums.map(|lane| lane.map(f32::to_bits));
    }
    Ok(results)
}

/// Returns one channel of the four texels that linear filtering would read, in this order: lower
/// row left, lower row right, upper row right, upper row left.
fn gathered(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    (texture, channel): (&Texture, u8),
    coordinates: &Coordinates,
) -> Result<Results, Box<LaunchFault>> {
    let mut results = [[0; 4]; 32];
    for (result, (right, below)) in [(0, 1), (1, 1), (1, 0), (0, 0)].into_iter().enumerate() {
        let mut corner = Corner { texels: [None; 32], weights: [0.0; 32] };
        memory::lanes(at.active, |lane| {
            let at = |dimension: usize| f32::from_bits(coordinates[dimension][lane]);
            let (x, y) = (texture.footprint(0, at(0))[right], texture.footprint(1, at(1))[below]);
            corner.texels[lane] = x.zip(y).map(|(x, y)| [x, y, 0]);
        });
        let values = texels(worker, cta, warp, at, texture, &corner)?;
        memory::lanes(at.active, |lane| {
            results[lane][result] = values[lane][usize::from(channel)];
        });
    }
    Ok(results)
}

/// Returns the texels that the lanes read: one per lane, or with linear filtering two in each
/// dimension.
fn corners(texture: &Texture, tex: Tex, at: &At, coordinates: &Coordinates) -> Vec<Corner> {
    let empty = || Corner { texels: [None; 32], weights: [0.0; 32] };
    let (layers, coordinates) = coordinates.split_at(usize::from(tex.layered));
    if texture.is_linear_memory {
        let mut only = empty();
        memory::lanes(at.active, |lane| {
            let index = texture.fetched(coordinates[0][lane] as i32);
            only.texels[lane] = index.map(|x| [x, 0, 0]);
        });
        return vec![only];
    }
    let count = if texture.linear { 1 << tex.dims } else { 1 };
    let mut corners: Vec<Corner> = (0..count).map(|_| empty()).collect();
    memory::lanes(at.active, |lane| {
        let mut near = [[(Some(0), 1.0), (None, 0.0)]; 3];
        for (dimension, values) in coordinates.iter().enumerate() {
            let coordinate = match tex.integral {
                true => values[lane] as i32 as f32,
                false => f32::from_bits(values[lane]),
            };
            near[dimension] = texture.neighbours(dimension, coordinate);
        }
        let layer = layers.first().map(|values| texture.layer(values[lane]));
        for (index, corner) in corners.iter_mut().enumerate() {
            let [(x, in_x), (y, in_y), (z, in_z)] =
                [0, 1, 2].map(|dimension| near[dimension][index >> dimension & 1]);
            corner.weights[lane] = in_x * in_y * in_z;
            if let (Some(x), Some(y), Some(z)) = (x, y, z)
                && corner.weights[lane] != 0.0
            {
                corner.texels[lane] = Some([x, y, layer.unwrap_or(z)]);
            }
        }
    });
    corners
}

/// Reads one texel per lane. A texel outside the texture is 0.
fn texels(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    texture: &Texture,
    corner: &Corner,
) -> Result<Results, Box<LaunchFault>> {
    let mut results = [[0; 4]; 32];
    let inside = (0..32).fold(0, |m, l| m | u32::from(corner.texels[l].is_some()) << l);
    let mut here = At { active: at.active & inside, ..*at };
    if here.active == 0 {
        return Ok(results);
    }
    let address = |lane: usize| corner.texels[lane].map(|texel| texture.texels.address(texel));
    let first = address(here.active.trailing_zeros() as usize).unwrap_or(texture.texels.base);
    let mut a: [u64; 32] = std::array::from_fn(|lane| address(lane).unwrap_or(first));
    let (width, channels) = (texture.texels.texel.bytes(), texture.texels.channels);
    let how = access(Space::Global, width, channels);
    let target = memory::resolve(worker, cta, warp, &mut here, &mut a, how, Kind::Read)?;
    worker.count_access(&target, how, &a, here.active, Kind::Read);
    if !matches!(target, Target::Global) {
        return Ok(results);
    }
    memory::lanes(here.active, |lane| {
        for channel in 0..channels {
            let at = a[lane] + u64::from(channel) * u64::from(width);
            // SAFETY: `resolve` has checked the lanes of the mask.
            let bits = unsafe { memory::global_get(at, width) };
            results[lane][usize::from(channel)] = converted(texture, bits as u32);
        }
    });
    Ok(results)
}

/// Converts a channel to the form in which its register holds it.
fn converted(texture: &Texture, bits: u32) -> u32 {
    let fraction = |value: f32| value.to_bits();
    match (texture.texels.texel, texture.as_integer) {
        (TexelType::F32 | TexelType::U32 | TexelType::S32, _) => bits,
        (TexelType::F16, _) => half::f16::from_bits(bits as u16).to_f32().to_bits(),
        (TexelType::U8 | TexelType::U16, true) => bits,
        (TexelType::S8, true) => bits as i8 as i32 as u32,
        (TexelType::S16, true) => bits as i16 as i32 as u32,
        (TexelType::U8, false) => fraction(bits as f32 / 255.0),
        (TexelType::U16, false) => fraction(bits as f32 / 65_535.0),
        (TexelType::S8, false) => fraction((f32::from(bits as i8) / 127.0).max(-1.0)),
        (TexelType::S16, false) => fraction((f32::from(bits as i16) / 32_767.0).max(-1.0)),
    }
}
