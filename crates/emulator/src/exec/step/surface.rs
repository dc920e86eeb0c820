//! Loads from and stores to surfaces.

use super::access::{Kind, Target, access};
use super::at::At;
use super::texture::{coordinates, mismatch, next_object, object, refused, unknown};
use super::{between, memory};
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Worker};
use crate::ir::{Beyond, Inst, Surf};
use crate::memory::{TexelObject, Texels};
use crate::ptx::Space;

type Done = Result<(), Box<LaunchFault>>;

/// Executes `suld` and `sust`. Lanes may refer to different surfaces.
pub(super) fn run(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    surf: Surf,
) -> Done {
    let code = worker.grid.code;
    let handles = *warp.frames[at.frame].regs.s64(&code.consts, inst.a);
    let coordinates = coordinates(worker, warp, at, inst);
    let mut left = at.active;
    while left != 0 {
        let (handle, here) = next_object(&mut left, &handles, at);
        let surface = match object(worker, handle) {
            Some(TexelObject::Surface(surface)) => surface,
            _ => return Err(unknown(worker, cta, warp, &here, ("surface", handle))),
        };
        let (has, used) = ((surface.dims, surface.layered), (surf.dims, surf.layered));
        if has != used {
            let what = mismatch("accesses a surface", has, used);
            return Err(refused(worker, cta, warp, &here, FaultKind::Unsupported, &what));
        }
        let places = places(worker, cta, warp, &here, (&surface, surf), &coordinates)?;
        transfer(worker, cta, warp, (&here, inst), surf, &places)?;
    }
    Ok(())
}

/// Returns the address of each active lane, or `None` for a lane that accesses nothing.
fn places(
    worker: &Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &At,
    (surface, surf): (&Texels, Surf),
    coordinates: &[[u32; 32]],
) -> Result<[Option<u64>; 32], Box<LaunchFault>> {
    let bytes = i64::from(surf.width) * i64::from(surf.count);
    let [width, height, depth] = surface.extents.map(|extent| extent as i64);
    let row = width * surface.bytes() as i64;
    // The last valid position in each dimension. Data longer than a row have no valid position in
    // x.
    let last = [(row - bytes) / bytes * bytes, height - 1, depth - 1];
    let (layers, coordinates) = coordinates.split_at(usize::from(surf.layered));
    let mut found = [None; 32];
    for lane in (0..32).filter(|lane| at.active >> lane & 1 == 1) {
        let own = At { active: 1 << lane, ..*at };
        let mut place = [0i64; 3];
        for (dimension, values) in coordinates.iter().enumerate() {
            place[dimension] = i64::from(values[lane] as i32);
        }
        if let Some(values) = layers.first() {
            place[2] = i64::from(values[lane] as i32);
        }
        let [x, y, z] = place;
        let is_inside = x >= 0
            && x.checked_add(bytes).is_some_and(|end| end <= row)
            && (0..height).contains(&y)
            && (0..depth).contains(&z);
        let is_nowhere = row < bytes || surf.beyond == Beyond::Zero;
        match (is_inside, surf.beyond) {
            (true, _) => {}
            (false, Beyond::Trap) => {
                let what = format!(
                    "{} {bytes} bytes at byte {x} of row {y}, slice or layer {z}, outside a surface of {} with rows of \
                     {row} bytes",
                    verb(surf),
                    surface.described()
                );
                return Err(refused(worker, cta, warp, &own, FaultKind::IllegalAddress, &what));
            }
            (false, _) if is_nowhere => continue,
            (false, _) => {
                for (coordinate, last) in place.iter_mut().zip(last) {
                    *coordinate = (*coordinate).clamp(0, last);
                }
            }
        }
        if place[0] % bytes != 0 {
            let what = format!(
                "{} {bytes} bytes at byte {x} of a row of a surface: the first coordinate is in bytes and must be a multiple of \
                 the size of the data",
                verb(surf)
            );
            return Err(refused(worker, cta, warp, &own, FaultKind::MisalignedAddress, &what));
        }
        let [x, y, z] = place.map(|coordinate| coordinate as u64);
        found[lane] = Some(surface.byte_at(x, y, z));
    }
    Ok(found)
}

fn verb(surf: Surf) -> &'static str {
    if surf.is_store { "stores" } else { "loads" }
}

/// Moves the data between registers and addresses. A load without an address returns zeros.
fn transfer(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    (at, inst): (&At, &Inst),
    surf: Surf,
    places: &[Option<u64>; 32],
) -> Done {
    let code = worker.grid.code;
    let data = &code.lists[inst.s as usize];
    let inside = (0..32).fold(0, |m, l| m | u32::from(places[l].is_some()) << l) & at.active;
    let mut here = At { active: inside, ..*at };
    let mut a = [0u64; 32];
    let how = access(Space::Global, surf.width, surf.count);
    if inside != 0 {
        let first = places[inside.trailing_zeros() as usize].unwrap_or(0);
        a = places.map(|place| place.unwrap_or(first));
        let kind = if surf.is_store { Kind::Write } else { Kind::Read };
        let target = memory::resolve(worker, cta, warp, &mut here, &mut a, how, kind)?;
        worker.count_access(&target, how, &a, here.active, kind);
        if !matches!(target, Target::Global) {
            return Ok(());
        }
    }
    for (n, reg) in data.iter().enumerate() {
        let offset = n as u64 * u64::from(surf.width);
        let regs = &mut warp.frames[at.frame].regs;
        if surf.is_store {
            let values: [u64; 32] = match surf.wide {
                true => *regs.s64(&code.consts, *reg),
                false => regs.s32(&code.consts, *reg).map(u64::from),
            };
            if here.active != 0 && cta.races.is_some() {
                let part = (offset, surf.width);
                between::writes(worker, cta, warp, &here, &a, part, &values, false);
            }
            memory::lanes(here.active, |lane| {
                // SAFETY: `resolve` has checked the lanes of the mask.
                unsafe { memory::global_put(a[lane] + offset, surf.width, values[lane]) }
            });
            continue;
        }
        let mut values = [0u64; 32];
        memory::lanes(here.active, |lane| {
            // SAFETY: as above.
            values[lane] = unsafe { memory::global_get(a[lane] + offset, surf.width) };
        });
        match surf.wide {
            true => regs.put64(*reg, &values, at.active),
            false => regs.put32(*reg, &values.map(|value| value as u32), at.active),
        }
    }
    Ok(())
}
