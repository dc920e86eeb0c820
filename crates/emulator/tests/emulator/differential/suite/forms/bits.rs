//! Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions" and the bit instructions
//! of "Integer Arithmetic Instructions").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

const BITS: [(&str, Ty); 3] = [("b16", Ty::B16), ("b32", Ty::B32), ("b64", Ty::B64)];

pub fn add(s: &mut Set) {
    for (t, ty) in BITS {
        for op in ["and", "or", "xor"] {
            s.op(75, &format!("{op}.{t}"), ty, &[ty, ty]);
        }
        s.plain(75, &format!("not.{t}"), ty, &[ty]);
        s.plain(75, &format!("cnot.{t}"), ty, &[ty]);
        s.op(75, &format!("shl.{t}"), ty, &[ty, Ty::Shift]);
        for kind in ["b", "u", "s"] {
            s.op(75, &format!("shr.{kind}{}", &t[1..]), ty, &[ty, Ty::Shift]);
        }
    }
    let predicates = "and.pred %o0, %a0, %a1;\nor.pred %o1, %a0, %a1;\nxor.pred %o2, %a0, %a1;\n\
                      not.pred %o3, %a0;\nmov.pred %o4, %a1;";
    s.push(Form::new("and or xor not mov pred", predicates).ins(&[Ty::P; 2]).outs(Ty::P, 5));
    for (t, ty) in &BITS[1..] {
        for op in ["popc", "clz"] {
            s.plain(75, &format!("{op}.{t}"), Ty::U32, &[*ty]);
        }
        s.plain(75, &format!("brev.{t}"), *ty, &[*ty]);
        s.op(75, &format!("bfi.{t}"), *ty, &[*ty, *ty, Ty::Shift, Ty::Shift]);
        for kind in ["u", "s"] {
            let t = format!("{kind}{}", &t[1..]);
            s.op(75, &format!("bfe.{t}"), *ty, &[*ty, Ty::Shift, Ty::Shift]);
            s.plain(75, &format!("bfind.{t}"), Ty::U32, &[*ty]);
            s.plain(75, &format!("bfind.shiftamt.{t}"), Ty::U32, &[*ty]);
        }
    }
    for mode in ["clamp", "wrap"] {
        s.op(75, &format!("bmsk.{mode}.b32"), Ty::B32, &[Ty::Shift, Ty::Shift]);
        for (t, ty) in [("u32", Ty::U32), ("s32", Ty::S32)] {
            s.op(75, &format!("szext.{mode}.{t}"), ty, &[ty, Ty::Shift]);
        }
        for side in ["l", "r"] {
            let inst = format!("shf.{side}.{mode}.b32");
            s.op(75, &inst, Ty::B32, &[Ty::B32, Ty::B32, Ty::Shift]);
        }
    }
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        s.op(75, &format!("prmt.b32{mode}"), Ty::B32, &[Ty::B32; 3]);
    }
    for a in ["u32", "s32"] {
        for b in ["u32", "s32"] {
            for op in ["dp4a", "dp2a.lo", "dp2a.hi"] {
                s.op(75, &format!("{op}.{a}.{b}"), Ty::B32, &[Ty::B32; 3]);
            }
        }
    }
    lop3(s);
    fns(s);
}

/// All 256 tables, 16 to a kernel.
fn lop3(s: &mut Set) {
    for high in 0..16 {
        let lines = (0..16)
            .map(|low| format!("lop3.b32 %o{low}, %a0, %a1, %a2, {:#x};\n", high * 16 + low));
        let body: String = lines.collect();
        let name = format!("lop3.b32 tables {:#x}-{:#x}", high * 16, high * 16 + 15);
        s.push(Form::new(name, body).ins(&[Ty::B32; 3]).outs(Ty::B32, 16));
    }
}

/// The base must be a bit number; the offset may be anything.
fn fns(s: &mut Set) {
    let body = "fns.b32 %o0, %a0, %a1, %a2;\nmov.b32 %r0, -1;\nsub.s32 %r1, %a3, 8;\n\
                fns.b32 %o1, %a0, %a1, %r1;\nfns.b32 %o2, %r0, %a1, %r1;";
    let ins = [Ty::B32, Ty::Below(32), Ty::S32, Ty::Below(17)];
    s.push(Form::new("fns.b32", body).ins(&ins).outs(Ty::B32, 3));
}
