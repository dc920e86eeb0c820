//! Reads the version, target and kernels with their parameters from PTX text.

use crate::ctype::CType;
use crate::diagnostics::boundary_before;
use warpgauge_code::source::{Token, TokenKind, tokenize};

/// Maximum number of kernels that are read from one module.
const MAX_KERNELS: usize = 4096;

/// Declarations of a PTX module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ptx {
    /// Version of the PTX language, e.g. (8, 8).
    pub version: (u32, u32),
    /// Target as the PTX states it, e.g. `sm_90a`.
    pub target: String,
    /// Kernels in the order of their declarations.
    pub kernels: Vec<PtxKernel>,
}

/// A kernel of a PTX module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PtxKernel {
    pub symbol: String,
    /// Parameters in order.
    pub params: Vec<PtxParam>,
}

/// A parameter of a PTX kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PtxParam {
    /// Type of the parameter. The declaration may not determine it fully.
    pub ctype: CType,
    /// Size of the parameter, bytes.
    pub bytes: u32,
    /// Offset of the parameter in the parameter block, bytes.
    pub offset: u32,
}

/// Reason why a text is not a valid PTX module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PtxError {
    #[error("the PTX declares no `.version`")]
    NoVersion,
    #[error("the PTX version {found:?} is not a number such as 8.0")]
    BadVersion { found: String },
    #[error("the PTX declares no `.target`")]
    NoTarget,
    #[error("cannot parse the parameters of PTX kernel {kernel:?} at {at:?}")]
    Params { kernel: String, at: String },
    #[error("a PTX kernel has no name or no body at {at:?}")]
    Entry { at: String },
}

impl Ptx {
    /// Returns the architecture number of the target, e.g. 90, and its suffix, e.g. `a`.
    pub(crate) fn arch(&self) -> Option<(u32, &str)> {
        let rest =
            self.target.strip_prefix("sm_").or_else(|| self.target.strip_prefix("compute_"))?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some((rest[..digits].parse().ok()?, &rest[digits..]))
    }
}

/// Reads the declarations of a PTX module.
pub(crate) fn read_ptx(text: &str) -> Result<Ptx, PtxError> {
    let tokens = tokenize(text);
    let mut reader = Reader { tokens: &tokens, at: 0 };
    let (mut version, mut target, mut kernels) = (None, None, Vec::new());
    while let Some(token) = reader.next() {
        if token.text != "." {
            continue;
        }
        match reader.peek().map(|t| t.text) {
            Some("version") => {
                reader.next();
                let found = reader.next().map_or("", |t| t.text);
                version.get_or_insert(parse_version(found)?);
            }
            Some("target") => {
                reader.next();
                let found = reader.next().map_or("", |t| t.text).to_owned();
                target.get_or_insert(found);
            }
            Some("entry") if kernels.len() < MAX_KERNELS => {
                reader.next();
                kernels.push(reader.kernel()?);
            }
            _ => {}
        }
    }
    Ok(Ptx {
        version: version.ok_or(PtxError::NoVersion)?,
        target: target.ok_or(PtxError::NoTarget)?,
        kernels,
    })
}

fn parse_version(found: &str) -> Result<(u32, u32), PtxError> {
    found
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| PtxError::BadVersion { found: found.to_owned() })
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a> Reader<'_, 'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|t| t.text == text);
        self.at += usize::from(found);
        found
    }

    /// Reads a kernel after `.entry`: the kernel's name and, in parentheses, its parameters.
    fn kernel(&mut self) -> Result<PtxKernel, PtxError> {
        let name = self.symbol().ok_or_else(|| PtxError::Entry { at: self.here() })?;
        let mut params = Vec::new();
        if self.eat("(") {
            let mut end = 0u32;
            while !self.eat(")") {
                let bad = |r: &Self| PtxError::Params { kernel: name.clone(), at: r.here() };
                let param = self.param(end).ok_or_else(|| bad(self))?;
                end = param.offset.checked_add(param.bytes).ok_or_else(|| bad(self))?;
                params.push(param);
                self.eat(",");
            }
        }
        Ok(PtxKernel { symbol: name, params })
    }

    /// A PTX identifier may begin with `%`, which the C++ lexer treats as punctuation.
    fn symbol(&mut self) -> Option<String> {
        let percent = self.eat("%");
        let token = self.next().filter(|t| t.kind == TokenKind::Word)?;
        Some(format!("{}{}", if percent { "%" } else { "" }, token.text))
    }

    /// Reads `.param [.align n] .type [.ptr …] name [[count]]`.
    fn param(&mut self, end: u32) -> Option<PtxParam> {
        if !(self.eat(".") && self.eat("param")) {
            return None;
        }
        let (mut align, mut ctype, mut size, mut pointer) = (None, CType::Unknown, 0, false);
        while self.eat(".") {
            let word = self.next()?.text;
            match word {
                // The `.align` after `.ptr` applies to the memory that the pointer refers to.
                "align" => {
                    let value: u32 = self.next()?.text.parse().ok()?;
                    if !pointer {
                        align = Some(value);
                    }
                }
                "ptr" => pointer = true,
                "global" | "shared" | "const" | "local" if pointer => {}
                _ => (ctype, size) = scalar(word)?,
            }
        }
        self.symbol()?;
        let mut bytes = size;
        if self.eat("[") {
            let count: u32 = self.next()?.text.parse().ok()?;
            bytes = size.checked_mul(count)?;
            ctype = CType::Aggregate(String::new());
            if !self.eat("]") {
                return None;
            }
        }
        if pointer {
            ctype = CType::Pointer { pointee: None, is_const: false };
        }
        let align = align.unwrap_or(size).max(1);
        let offset = end.checked_next_multiple_of(align)?;
        Some(PtxParam { ctype, bytes, offset })
    }

    fn here(&self) -> String {
        let from = self.at.saturating_sub(1).min(self.tokens.len());
        let to = (self.at + 6).min(self.tokens.len());
        let words: Vec<&str> = self.tokens[from..to].iter().map(|t| t.text).collect();
        let mut text = words.join(" ");
        text.truncate(boundary_before(&text, 80));
        text
    }
}

/// Returns the type and size of a scalar parameter. Compilers write `.u` and `.b` types for signed
/// values, unsigned values and pointers alike.
fn scalar(word: &str) -> Option<(CType, u32)> {
    Some(match word {
        "f32" => (CType::F32, 4),
        "f64" => (CType::F64, 8),
        "f16" => (CType::F16, 2),
        "bf16" => (CType::Bf16, 2),
        "s8" => (CType::I8, 1),
        "s16" => (CType::I16, 2),
        "s32" => (CType::I32, 4),
        "s64" => (CType::I64, 8),
        "u8" | "b8" => (CType::Integer, 1),
        "u16" | "b16" => (CType::Integer, 2),
        "u32" | "b32" => (CType::Integer, 4),
        "u64" | "b64" => (CType::Integer, 8),
        "f16x2" | "bf16x2" => (CType::Unknown, 4),
        "b128" => (CType::Unknown, 16),
        "texref" | "samplerref" | "surfref" => (CType::Unknown, 8),
        _ => return None,
    })
}

/// Returns the size of a scalar type, bytes.
pub(super) fn size_of(word: &str) -> Option<u32> {
    scalar(word).map(|(_, bytes)| bytes)
}

/// Returns the CUDA release that introduced a PTX version, in the encoding of `cuDriverGetVersion`
/// (13000 = 13.0).
pub(crate) fn cuda_version_of((major, minor): (u32, u32)) -> i32 {
    let (cuda_major, cuda_minor) = match (major, minor) {
        (0..7, _) => (10, 2),
        (7, minor) => (11, minor),
        (8, minor @ 0..=5) => (12, minor),
        (8, minor) => (12, minor + 1),
        (major, minor) => (major.saturating_add(4), minor),
    };
    i32::try_from(cuda_major.saturating_mul(1000).saturating_add(cuda_minor.saturating_mul(10)))
        .unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "ptx_tests.rs"]
mod tests;
