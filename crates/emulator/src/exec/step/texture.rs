//! Reads of textures.

use super::access::{Kind, Target, access};
use super::at::At;
use super::memory;
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Where, Worker, fault};
use crate::ir::{Inst, Tex};
use crate::memory::{TexelType, Texture};
use crate::ptx::Space;

type Done = Result<(), Box<LaunchFault>>;

/// Four results of each lane.
type Results = [[u32; 4]; 32];

/// One texel of each lane, and its weight; `None` for a texel that is outside, or that no result depends on.
struct Corner {
    texels: [Option<(u64, u64)>; 32],
    weights: [f32; 32],
}

/// Executes `tex`. Lanes may name different textures.
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
    let coordinates = [inst.b, inst.c].map(|reg| *regs.s32(&code.consts, reg));
    let mut left = at.active;
    while left != 0 {
        let handle = handles[left.trailing_zeros() as usize];
        let same = (0..32).fold(0, |m, l| m | u32::from(handles[l] == handle) << l) & left;
        left &= !same;
        let here = At { active: same, ..*at };
        let textures = worker.grid.table.textures.clone();
        let texture = textures.get(&handle).ok_or_else(|| {
            let what = format!("reads the texture {handle:#x}, which does not exist");
            refused(worker, cta, warp, &here, FaultKind::IllegalAddress, &what)
        })?;
        if let Some(why) = unfit(texture, tex) {
            return Err(refused(worker, cta, warp, &here, FaultKind::Unsupported, why));
        }
        let results = sampled(worker, cta, warp, &here, (texture, tex), &coordinates)?;
        let regs = &mut warp.frames[at.frame].regs;
        for (channel, reg) in code.lists[inst.s as usize].iter().enumerate() {
            regs.put32(*reg, &results.map(|lane| lane[channel]), same);
        }
    }
    Ok(())
}

/// Returns why a texture cannot be read so.
fn unfit(texture: &Texture, tex: Tex) -> Option<&'static str> {
    match (texture.rows, tex.dims, tex.integral) {
        (None, 1, true) | (Some(_), 2, _) => None,
        (None, 1, false) => Some(
            "reads a texture of linear memory by a floating-point coordinate: tex1Dfetch reads it",
        ),
        (None, ..) => Some("reads a texture of linear memory by two coordinates"),
        (Some(_), ..) => Some("reads a texture of two dimensions by one coordinate"),
    }
}

fn refused(
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
    coordinates: &[[u32; 32]; 2],
) -> Result<Results, Box<LaunchFault>> {
    let mut results = [[0; 4]; 32];
    let corners = corners(texture, tex, at, coordinates);
    let interpolates = texture.rows.is_some() && texture.linear;
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

/// Returns the texels that the lanes read: one, or with linear filtering four.
fn corners(texture: &Texture, tex: Tex, at: &At, coordinates: &[[u32; 32]; 2]) -> Vec<Corner> {
    let empty = || Corner { texels: [None; 32], weights: [0.0; 32] };
    if texture.rows.is_none() {
        let mut only = empty();
        memory::lanes(at.active, |lane| {
            only.texels[lane] = texture.fetched(coordinates[0][lane] as i32).map(|x| (x, 0));
        });
        return vec![only];
    }
    let mut corners: Vec<Corner> =
        (0..if texture.linear { 4 } else { 1 }).map(|_| empty()).collect();
    memory::lanes(at.active, |lane| {
        let coordinate = |dimension: usize| match tex.integral {
            true => coordinates[dimension][lane] as i32 as f32,
            false => f32::from_bits(coordinates[dimension][lane]),
        };
        let [x, y] = [0, 1].map(|dimension| texture.neighbours(dimension, coordinate(dimension)));
        for (index, corner) in corners.iter_mut().enumerate() {
            let ((x, in_x), (y, in_y)) = (x[index % 2], y[index / 2]);
            corner.weights[lane] = in_x * in_y;
            if corner.weights[lane] != 0.0 {
                corner.texels[lane] = x.zip(y);
            }
        }
    });
    corners
}

/// Reads a texel of each lane. What is outside is 0.
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
    let address = |lane: usize| corner.texels[lane].map(|(x, y)| texture.address(x, y));
    let first = address(here.active.trailing_zeros() as usize).unwrap_or(texture.base);
    let mut a: [u64; 32] = std::array::from_fn(|lane| address(lane).unwrap_or(first));
    let (width, channels) = (texture.texel.bytes(), texture.channels);
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

/// Returns a channel as its register has it.
fn converted(texture: &Texture, bits: u32) -> u32 {
    let fraction = |value: f32| value.to_bits();
    match (texture.texel, texture.as_integer) {
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
