//! Reads cubins: ELF files with machine code for one architecture.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf::{EM_CUDA, FileHeader64, STT_FUNC};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use super::eiattr::{
    Attribute, FRAME_SIZE, MAX_THREADS, MIN_STACK_SIZE, REGCOUNT, REQNTID, attributes,
};
use warpgauge_model::Resources;

/// Maximum number of kernels read from one image.
const MAX_KERNELS: usize = 4096;

/// Maximum number of parameters of one kernel.
const MAX_PARAMS: usize = 4096;

/// Size of the shared memory that the system reserves at the start of a block on some
/// architectures, bytes.
const RESERVED_SHARED: u32 = 1024;

/// Flag that marks a function symbol as a kernel (`STO_CUDA_ENTRY`).
const ENTRY: u8 = 0x10;

/// Content of a cubin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cubin {
    /// Architecture of the code: the number in `sm_NN`.
    pub arch: u32,
    /// Kernels in the order of the symbol table.
    pub kernels: Vec<RawKernel>,
}

/// A kernel without parameter types: the facts that every image contains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawKernel {
    pub symbol: String,
    /// Parameters in order; `None` if the kernel has parameters that the image does not list.
    pub params: Option<Vec<RawParam>>,
    pub resources: Resources,
}

/// Offset and size of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawParam {
    /// Size of the parameter, bytes.
    pub bytes: u32,
    /// Offset of the parameter in the parameter block, bytes.
    pub offset: u32,
}

/// Reason why bytes are not a valid cubin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CubinError {
    #[error("the cubin is not an ELF file: it begins with {found}")]
    NotElf { found: String },
    #[error("the cubin is truncated: {missing} of {expected} bytes are missing")]
    Truncated { missing: u64, expected: u64 },
    #[error("the ELF file is for machine {machine}, not for a GPU (190, EM_CUDA)")]
    NotCuda { machine: u16 },
    #[error("the ELF file is damaged: {what}")]
    Damaged { what: String },
}

/// Reads a cubin.
pub(crate) fn read_cubin(bytes: &[u8]) -> Result<Cubin, CubinError> {
    check_magic(bytes)?;
    let damaged = |e: object::Error| CubinError::Damaged { what: e.to_string() };
    let header = match FileHeader64::<LittleEndian>::parse(bytes) {
        Ok(header) => header,
        Err(_) if bytes.len() < 64 => {
            let missing = 64 - bytes.len() as u64;
            return Err(CubinError::Truncated { missing, expected: 64 });
        }
        Err(e) => return Err(damaged(e)),
    };
    let endian = LittleEndian;
    let machine = header.e_machine(endian);
    if machine != EM_CUDA {
        return Err(CubinError::NotCuda { machine });
    }
    check_length(header, bytes)?;
    let sections = header.sections(endian, bytes).map_err(damaged)?;
    let mut module = Module::default();
    for section in sections.iter() {
        let end = section.sh_offset(endian).saturating_add(section.sh_size(endian));
        if section.sh_type(endian) != object::elf::SHT_NOBITS && end > bytes.len() as u64 {
            let missing = end - bytes.len() as u64;
            return Err(CubinError::Truncated { missing, expected: end });
        }
        let name = sections.section_name(endian, section).map_err(damaged)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let size = u32::try_from(section.sh_size(endian)).unwrap_or(u32::MAX);
        module.sizes.insert(name.clone(), size);
        if name.starts_with(".nv.info") {
            let data = section.data(endian, bytes).map_err(damaged)?;
            module.infos.insert(name, data);
        }
    }
    let symbols = sections.symbols(endian, bytes, object::elf::SHT_SYMTAB).map_err(damaged)?;
    let mut kernels = Vec::new();
    for (index, symbol) in symbols.iter().enumerate() {
        let is_kernel = symbol.st_type() == STT_FUNC && symbol.st_other() & ENTRY != 0;
        if !is_kernel || kernels.len() == MAX_KERNELS {
            continue;
        }
        let name = symbol.name(endian, symbols.strings()).map_err(damaged)?;
        let name = String::from_utf8_lossy(name).into_owned();
        kernels.push(module.kernel(name, u32::try_from(index).unwrap_or(u32::MAX)));
    }
    Ok(Cubin { arch: arch(header), kernels })
}

fn check_magic(bytes: &[u8]) -> Result<(), CubinError> {
    if bytes.starts_with(b"\x7fELF") {
        return Ok(());
    }
    let found = match bytes.get(..4) {
        None => format!("{} bytes only", bytes.len()),
        Some(head) if head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            format!("the text {:?}", String::from_utf8_lossy(head))
        }
        Some(head) => format!("{head:02x?}"),
    };
    Err(CubinError::NotElf { found })
}

/// Checks whether a cubin is truncated. The section and program tables are at its end.
fn check_length(header: &FileHeader64<LittleEndian>, bytes: &[u8]) -> Result<(), CubinError> {
    let endian = LittleEndian;
    let sections = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
    let programs = u64::from(header.e_phnum(endian)) * u64::from(header.e_phentsize(endian));
    let expected = header
        .e_shoff(endian)
        .saturating_add(sections)
        .max(header.e_phoff(endian).saturating_add(programs));
    let length = bytes.len() as u64;
    if expected > length {
        return Err(CubinError::Truncated { missing: expected - length, expected });
    }
    Ok(())
}

/// Returns the architecture. In version 8 of the format (CUDA 12.8 and later), it is at another
/// position in the flags.
fn arch(header: &FileHeader64<LittleEndian>) -> u32 {
    let flags = header.e_flags(LittleEndian);
    if header.e_ident().abi_version >= 8 { (flags >> 8) & 0xff } else { flags & 0xff }
}

/// Sections of an image, by name.
#[derive(Default)]
struct Module<'a> {
    sizes: HashMap<String, u32>,
    infos: HashMap<String, &'a [u8]>,
}

impl<'a> Module<'a> {
    fn size(&self, name: &str) -> u32 {
        self.sizes.get(name).copied().unwrap_or(0)
    }

    fn info(&self, name: &str) -> impl Iterator<Item = Attribute<'a>> {
        attributes(self.infos.get(name).copied().unwrap_or(&[]))
    }

    /// Returns the value of the attribute `kind` for the function with this symbol index, from the
    /// module's attribute list.
    fn of_symbol(&self, kind: u8, symbol: u32) -> Option<u32> {
        self.info(".nv.info")
            .find(|a| a.kind == kind && a.u32(0) == Some(symbol))
            .and_then(|a| a.u32(1))
    }

    /// Returns a kernel's static shared memory in bytes. From sm_90 on, the section's size includes
    /// 1024 bytes that the system reserves. The figures of ptxas and of the driver's function
    /// attribute do not include them.
    fn static_shared(&self, symbol: &str) -> u32 {
        let reserved =
            if self.sizes.contains_key(".nv.shared.reserved.0") { RESERVED_SHARED } else { 0 };
        self.size(&format!(".nv.shared.{symbol}")).saturating_sub(reserved)
    }

    fn kernel(&self, symbol: String, index: u32) -> RawKernel {
        let own = format!(".nv.info.{symbol}");
        let mut params: Vec<_> =
            self.info(&own).filter_map(|a| a.param()).take(MAX_PARAMS).collect();
        params.sort_by_key(|p| p.ordinal);
        let in_order = params.iter().enumerate().all(|(at, p)| usize::from(p.ordinal) == at);
        let params = (in_order && self.infos.contains_key(&own)).then(|| {
            params.iter().map(|p| RawParam { bytes: p.bytes, offset: p.offset.into() }).collect()
        });
        let registers = self.of_symbol(REGCOUNT, index).unwrap_or(0);
        let frame = self.of_symbol(FRAME_SIZE, index).unwrap_or(0);
        let stack = self.of_symbol(MIN_STACK_SIZE, index).unwrap_or(frame);
        let bound = self
            .info(&own)
            .find(|a| a.kind == REQNTID || a.kind == MAX_THREADS)
            .and_then(|a| a.u32(0)?.checked_mul(a.u32(1)?)?.checked_mul(a.u32(2)?));
        let constants = [0, 2, 3].iter().map(|bank| match bank {
            3 => self.size(".nv.constant3"),
            _ => self.size(&format!(".nv.constant{bank}.{symbol}")),
        });
        RawKernel {
            params,
            resources: Resources {
                registers,
                static_shared_bytes: self.static_shared(&symbol),
                local_bytes: stack.max(frame),
                stack_bytes: Some(frame),
                spill_store_bytes: None,
                spill_load_bytes: None,
                const_bytes: constants.fold(0, u32::saturating_add),
                max_threads_per_block: max_threads_per_block(registers, bound),
            },
            symbol,
        }
    }
}

/// Returns the largest number of threads per block that both the register file and the bound that
/// the code declares allow. The file has 65536 registers per block, allocated to warps in units of
/// 256.
pub(crate) fn max_threads_per_block(registers: u32, bound: Option<u32>) -> u32 {
    let per_warp = (registers.clamp(1, 255) * 32).next_multiple_of(256);
    let by_registers = (65536 / per_warp * 32).min(1024);
    bound.filter(|&b| b > 0).map_or(by_registers, |b| b.min(by_registers))
}

#[cfg(test)]
#[path = "cubin_tests.rs"]
mod tests;
