//! The intermediate representation that the emulator executes: flat code with resolved register
//! numbers, constants and branch targets.

mod inst;
mod kinds;
pub(crate) mod lower;
mod op;
mod param;
pub(crate) mod window;

pub(crate) use inst::{
    CallSite, Class, Code, Consts, FuncInfo, Inst, K, NO_GUARD, RESERVED_SHARED, Role, Row32,
    Row64, SourceLine,
};
pub(crate) use kinds::{
    Bar, Builtin, Carry, Cmp, F1, F2, FCmp, I1, I2, I3, Mbar, Redux, Rmw, Shfl, Sreg, Testp, Vote,
};
pub(crate) use op::{Access, Beyond, Cvt, Elem, Fp, Mma, Mode, Op, Surf, Tex, Wmma, WmmaKind};
pub use param::ParamLayout;
