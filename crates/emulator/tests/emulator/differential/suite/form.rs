//! A form: one instruction in one of its variants, as a kernel over random operands.

use std::fmt::Write as _;

use super::value::{Format, Random, Ty};

/// Seed of all random operands and literals.
pub const SEED: u64 = 0x5eed_0000_0000_0001;

/// Parameters of every kernel: inputs, outputs, and bytes that are the same in each launch.
const PARAMS: &str = ".param .u64 pin, .param .u64 pout, .param .align 16 .b8 pdata[16]";

/// The bytes of the last parameter.
pub const PARAM_DATA: [u8; 16] = [
    0x01, 0x82, 0x03, 0xff, 0x7f, 0x80, 0x55, 0xaa, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x90,
];

/// What outputs hold before the kernel runs.
pub const FILL: u8 = 0xa5;

/// How results of the emulator and of a GPU compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Class {
    /// Bit for bit.
    Exact,
    /// Within a bound, element by element.
    Approx(Bound),
}

/// The largest difference allowed. The bound that the PTX ISA documents is that of the GPU's
/// result from the true value; the emulator's own rounding is added to it by half an ulp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    pub ulp: f64,
    pub relative: f64,
    pub absolute: f64,
    /// Format of the results.
    pub format: Format,
}

/// What a kernel writes for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// The register `%oN`.
    Reg(Ty),
    /// Bytes at the address `%m`, which the body fills; a multiple of 16.
    Memory(u32),
}

impl Out {
    /// Bytes for each thread.
    pub fn bytes(self) -> usize {
        match self {
            Self::Reg(ty) => ty.slot(),
            Self::Memory(n) => n as usize,
        }
    }
}

/// One kernel. Its body finds its operands in `%a0`, `%a1`, …, the thread's number in `%t` (in the
/// grid) and `%x` (in the block), the inputs' address in `%din`, and may use the registers
/// `%p0`–`%p15`, `%h0`–`%h15` (16 bits), `%r0`–`%r31` and `%d0`–`%d15` (64 bits).
#[derive(Debug, Clone)]
pub struct Form {
    pub name: String,
    /// The least architecture that has it.
    pub sm: u32,
    pub class: Class,
    pub ins: Vec<Ty>,
    pub outs: Vec<Out>,
    pub body: String,
    /// Declarations at the begin of the kernel.
    pub locals: String,
    /// Declarations before the kernel; `@_` stands for a prefix that is the form's own.
    pub globals: String,
    pub block: [u32; 3],
    pub grid: u32,
    /// An output that is not compared: the device is free to choose it.
    pub free: Option<usize>,
}

/// FNV-1a, for seeds that depend on nothing but the name.
pub fn fnv(bytes: &[u8]) -> u64 {
    let mix = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl Form {
    pub fn new(name: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            sm: 75,
            class: Class::Exact,
            ins: Vec::new(),
            outs: Vec::new(),
            body: body.into(),
            locals: String::new(),
            globals: String::new(),
            block: [256, 1, 1],
            grid: 2,
            free: None,
        }
    }

    pub fn sm(mut self, sm: u32) -> Self {
        self.sm = sm;
        self
    }

    pub fn ins(mut self, ins: &[Ty]) -> Self {
        self.ins = ins.to_vec();
        self
    }

    /// `n` result registers of a type.
    pub fn outs(mut self, ty: Ty, n: usize) -> Self {
        self.outs.extend(std::iter::repeat_n(Out::Reg(ty), n));
        self
    }

    pub fn memory(mut self, bytes: u32) -> Self {
        self.outs.push(Out::Memory(bytes));
        self
    }

    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    pub fn locals(mut self, text: impl Into<String>) -> Self {
        self.locals = text.into();
        self
    }

    pub fn globals(mut self, text: impl Into<String>) -> Self {
        self.globals = text.into();
        self
    }

    pub fn block(mut self, block: [u32; 3], grid: u32) -> Self {
        (self.block, self.grid) = (block, grid);
        self
    }

    /// Excludes an output from the comparison.
    pub fn free(mut self, output: usize) -> Self {
        self.free = Some(output);
        self
    }

    /// Outputs that are compared.
    pub fn compared(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.outs.len()).filter(|o| self.free != Some(*o))
    }

    pub fn threads(&self) -> usize {
        self.block.iter().product::<u32>() as usize * self.grid as usize
    }

    /// The form's own source of random numbers.
    pub fn random(&self) -> Random {
        Random::new(fnv(self.name.as_bytes()) ^ SEED)
    }

    /// Random operands: one array for each, a slot for each thread.
    pub fn inputs(&self) -> Vec<u8> {
        let mut r = self.random();
        let n = self.threads();
        let mut columns: Vec<Vec<u8>> = vec![Vec::new(); self.ins.len()];
        for _ in 0..n {
            let mut before = None;
            for (ty, column) in self.ins.iter().zip(&mut columns) {
                let v = ty.draw(&mut r, before);
                column.extend_from_slice(&v.to_le_bytes()[..ty.slot()]);
                before = Some(v);
            }
        }
        let mut out = columns.concat();
        // A kernel without operands still gets an address.
        out.resize(out.len().max(16), 0);
        out
    }

    /// Operand `i` of a thread in the bytes of `inputs`.
    pub fn operand(&self, inputs: &[u8], i: usize, thread: usize) -> u64 {
        let at = self.ins[..i].iter().map(|t| t.slot() * self.threads()).sum::<usize>()
            + thread * self.ins[i].slot();
        little(&inputs[at..at + self.ins[i].slot()])
    }

    pub fn output_bytes(&self) -> usize {
        self.outs.iter().map(|o| o.bytes() * self.threads()).sum()
    }

    /// Where output `i` of a thread lies among the outputs.
    pub fn output_at(&self, i: usize, thread: usize) -> std::ops::Range<usize> {
        let before = self.outs[..i].iter().map(|o| o.bytes() * self.threads()).sum::<usize>();
        let at = before + thread * self.outs[i].bytes();
        at..at + self.outs[i].bytes()
    }

    /// The kernel's text.
    pub fn ptx(&self, kernel: &str) -> String {
        let own = format!("{kernel}_");
        let mut s = self.globals.replace("@_", &own);
        let _ = writeln!(s, "// {}", self.name);
        let _ = writeln!(s, ".visible .entry {kernel}({PARAMS})\n{{");
        s.push_str(".reg .pred %p<16>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n");
        s.push_str(".reg .b64 %d<16>;\n.reg .b32 %t, %x, %y;\n");
        s.push_str(".reg .b64 %din, %dout, %q4, %q8, %w4, %w8, %m, %k;\n");
        for (i, ty) in self.ins.iter().enumerate() {
            let _ = writeln!(s, ".reg .{} %a{i};", ty.register());
        }
        for (i, out) in self.outs.iter().enumerate() {
            if let Out::Reg(ty) = out {
                let _ = writeln!(s, ".reg .{} %o{i};", ty.register());
            }
        }
        s.push_str(&self.locals.replace("@_", &own));
        self.prologue(&mut s);
        let _ = writeln!(s, "{}", self.body.replace("@_", &own));
        self.epilogue(&mut s);
        s.push_str("ret;\n}\n");
        s
    }

    fn prologue(&self, s: &mut String) {
        s.push_str("ld.param.u64 %din, [pin];\nld.param.u64 %dout, [pout];\n");
        s.push_str("mov.u32 %x, %tid.x;\nmov.u32 %t, %ctaid.x;\nmov.u32 %y, %ntid.x;\n");
        if self.block[1] * self.block[2] > 1 {
            let [x, y, z] = self.block;
            let _ = writeln!(s, "mov.u32 %r0, %tid.y;\nmad.lo.u32 %x, %r0, {x}, %x;");
            let _ = writeln!(s, "mov.u32 %r0, %tid.z;\nmad.lo.u32 %x, %r0, {}, %x;", x * y);
            let _ = writeln!(s, "mov.u32 %y, {};", x * y * z);
        }
        s.push_str("mad.lo.u32 %t, %t, %y, %x;\n");
        s.push_str("mul.wide.u32 %k, %t, 4;\nadd.u64 %q4, %din, %k;\nadd.u64 %w4, %dout, %k;\n");
        s.push_str("mul.wide.u32 %k, %t, 8;\nadd.u64 %q8, %din, %k;\nadd.u64 %w8, %dout, %k;\n");
        let mut at = 0;
        for (i, ty) in self.ins.iter().enumerate() {
            let _ = match ty.bits() {
                1 => writeln!(s, "ld.global.b32 %y, [%q4+{at}];\nsetp.ne.b32 %a{i}, %y, 0;"),
                16 => writeln!(s, "ld.global.b16 %a{i}, [%q4+{at}];"),
                32 => writeln!(s, "ld.global.b32 %a{i}, [%q4+{at}];"),
                _ => writeln!(s, "ld.global.b64 %a{i}, [%q8+{at}];"),
            };
            at += ty.slot() * self.threads();
        }
        let mut at = 0;
        for out in &self.outs {
            if let Out::Memory(n) = out {
                let _ = writeln!(s, "mul.wide.u32 %m, %t, {n};\nadd.u64 %m, %m, %dout;");
                let _ = writeln!(s, "add.u64 %m, %m, {at};");
            }
            at += out.bytes() * self.threads();
        }
    }

    fn epilogue(&self, s: &mut String) {
        let mut at = 0;
        for (i, out) in self.outs.iter().enumerate() {
            let _ = match out {
                Out::Memory(_) => Ok(()),
                Out::Reg(ty) => match ty.bits() {
                    1 => writeln!(s, "selp.b32 %y, 1, 0, %o{i};\nst.global.b32 [%w4+{at}], %y;"),
                    16 => writeln!(s, "st.global.b16 [%w4+{at}], %o{i};"),
                    32 => writeln!(s, "st.global.b32 [%w4+{at}], %o{i};"),
                    _ => writeln!(s, "st.global.b64 [%w8+{at}], %o{i};"),
                },
            };
            at += out.bytes() * self.threads();
        }
    }
}

/// A number of up to eight bytes.
pub fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}
