//! The form that runs: flat code with register numbers, constants and branch targets resolved.

mod alloc;
mod inst;
pub(crate) mod lower;
mod op;

pub(crate) use inst::{
    CallSite, Class, Code, Consts, FuncInfo, Inst, K, NO_GUARD, Role, Row32, Row64, SourceLine,
};
pub(crate) use op::{
    Access, Bar, Builtin, Carry, Cmp, Cvt, Elem, F1, F2, FCmp, Fp, I1, I2, I3, Mbar, Mma, Mode, Op,
    Redux, Rmw, Shfl, Sreg, Testp, Vote, Wmma, WmmaKind,
};
