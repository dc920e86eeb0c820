//! The vocabulary of PTX beyond the part that the emulator implements, according to PTX ISA 9.0. It
//! distinguishes PTX that the emulator does not support from text that is not PTX.

/// Names of the instructions of the ISA.
const INSTRUCTIONS: &str = "abs activemask add addc alloca and applypriority atom bar barrier bfe \
    bfi bfind bmsk bra brev brkpt brx call clusterlaunchcontrol clz cnot copysign cos cp \
    createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence fma fns getctarank \
    griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier \
    membar min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent popc prefetch \
    prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr sin \
    slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext tanh tcgen05 \
    tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 \
    vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma \
    wmma xor";

/// Instructions whose operands may have forms that the parser cannot read.
const FOREIGN: &str = "clusterlaunchcontrol cp istypep multimem red suld suq \
    sured sust tcgen05 tensormap tex tld4 txq wgmma";

/// Types of instructions and variables that the emulator does not support.
const TYPES: &str = "e2m1 e2m1x2 e2m1x4 e2m3 e2m3x2 e2m3x4 e3m2 e3m2x2 e3m2x4 e4m3 e4m3x4 e5m2 \
    e5m2x4 ue8m0 ue8m0x2 ue4m3 f32x2 s16x2 u16x2 s8x4 u8x4 s8x2 u8x2 s4 u4 s2 u2 b1 b2 b4 b6x16_p32 \
    b4x16_p64 b8x16 b1024 bf16x4 f16x4 s2f6x2 texref samplerref surfref tensormap";

/// Modifiers that may follow an instruction, by the name of the instruction.
const MODIFIERS: &[(&str, &str)] = &[
    ("add sub", "cc ftz rm rn rp rs rz sat"),
    ("addc subc", "cc"),
    ("mul", "ftz hi lo rm rn rp rz sat wide"),
    ("mad madc", "cc ftz hi lo rm rn rp rz sat wide"),
    ("mul24 mad24", "hi lo sat"),
    ("fma", "ftz oob relu rm rn rp rs rz sat"),
    ("div rcp sqrt", "approx ftz full rm rn rp rz"),
    ("rsqrt sin cos ex2 lg2 tanh", "approx ftz"),
    ("abs neg", "ftz"),
    ("min max", "NaN abs ftz relu xorsign"),
    ("bfind", "shiftamt"),
    ("bmsk szext", "clamp wrap"),
    ("shf", "clamp l r wrap"),
    ("dp2a", "hi lo"),
    ("lop3", "and or b32"),
    ("prmt", "b4e ecl ecr f4e rc16 rc8"),
    ("set setp", "and equ eq ftz ge geu gt gtu hi hs le leu lo ls lt ltu nan ne neu num or xor"),
    ("slct", "ftz"),
    ("testp", "finite infinite normal notanumber number subnormal"),
    ("cvt", "ftz pack relu rm rmi rn rna rni rp rpi rs rz rzi sat satfinite scaled::n2::ue8m0"),
    (
        "ld ldu st atom red",
        "acq_rel acquire add and async bulk ca cas cg cluster const cs cta cv dec exch global gpu \
         inc local lu max min mmio nc noftz or param param::entry param::func relaxed release \
         shared shared::cluster shared::cta sys unified v2 v4 v8 volatile wb weak wt xor \
         mbarrier::complete_tx::bytes",
    ),
    (
        "cvta isspacep",
        "const global local param param::entry shared shared::cluster shared::cta to",
    ),
    (
        "cp",
        "L1 L2 add aligned and arrive async bulk ca cg commit_group dec fragment global im2col \
         im2col_no_offs inc max mbarrier min multicast::cluster noftz noinc or prefetch read \
         reduce reduce_add shared shared::cluster shared::cta tensor tile tile::gather4 \
         tile::scatter4 wait_all wait_group xor",
    ),
    (
        "ldmatrix stmatrix",
        "aligned m16n16 m16n8 m8n16 m8n8 num shared shared::cta sync trans x1 x2 x4",
    ),
    (
        "mma wmma",
        "a aligned and b block_scale c col d global load mma popc rm rn row rp rz satfinite shared \
         shared::cta sp store sync xor",
    ),
    ("movmatrix", "aligned m8n8 sync trans"),
    (
        "mbarrier",
        "acquire arrive arrive_drop cluster complete_tx cta expect_tx inval init noComplete noinc \
         parity pending_count relaxed release shared shared::cluster shared::cta test_wait try_wait",
    ),
    ("shfl", "bfly down idx sync up"),
    ("vote", "all any ballot sync uni"),
    ("match", "all any sync"),
    ("redux", "NaN abs add and max min or sync xor"),
    ("elect", "sync"),
    (
        "bar barrier",
        "acquire aligned and arrive cluster cta or popc red relaxed release sync wait warp",
    ),
    ("suld sust", "1d 2d 3d a1d a2d b ca cg clamp cs cv p trap v2 v4 wb wt zero"),
    ("tex", "1d 2d 3d a1d a2d acube base cube grad level v4"),
    ("bra call", "uni"),
    ("brx", "idx uni"),
    ("ret", "uni"),
];

/// Directives of the ISA: at module scope, of functions and within functions.
const DIRECTIVES: &str = "abi_preserve abi_preserve_control address_size alias align \
    blocksareclusters branchtargets callprototype calltargets common const entry explicitcluster \
    extern file func global language loc local maxclusterrank maxnctapersm maxnreg maxntid \
    minnctapersm noreturn param pragma reg reqnctapercluster reqntid section shared surfref target \
    tex texref samplerref tensormap unified version visible weak";

fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

/// Returns whether the ISA has an instruction called `name`.
pub(crate) fn is_instruction(name: &str) -> bool {
    listed(INSTRUCTIONS, name)
}

/// Returns whether operands of the instruction may have a form that the parser cannot read.
pub(crate) fn has_foreign_operands(name: &str) -> bool {
    listed(FOREIGN, name)
}

/// Returns whether `MODIFIERS` lists the words that may follow the instruction.
pub(crate) fn has_modifiers(instruction: &str) -> bool {
    MODIFIERS.iter().any(|(names, _)| listed(names, instruction))
}

/// Returns whether the ISA has a type called `name` that the emulator does not support.
pub(crate) fn is_foreign_type(name: &str) -> bool {
    listed(TYPES, name)
}

/// Returns whether the ISA has a directive called `name`.
pub(crate) fn is_directive(name: &str) -> bool {
    listed(DIRECTIVES, name)
}

/// Returns whether `word` may follow `instruction` in any of its forms.
pub(crate) fn is_modifier(instruction: &str, word: &str) -> bool {
    let shape = |word: &str| {
        let sized = word.strip_prefix('m').and_then(|rest| rest.split_once('n'));
        sized.is_some_and(|(m, n)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits(m) && n.split('k').all(digits)
        })
    };
    if super::Type::parse(word).is_some() || is_foreign_type(word) {
        return true;
    }
    let hint = ["L1::", "L2::", "level::"].iter().any(|prefix| word.starts_with(prefix));
    let rows = MODIFIERS.iter().find(|(names, _)| listed(names, instruction));
    match (rows, instruction) {
        (_, "ld" | "ldu" | "st" | "atom" | "red" | "cp") if hint => true,
        (_, "mma" | "wmma") if shape(word) => true,
        (_, "mma") => {
            let prefixed = ["kind::", "scale_vec::", "sp::"].iter();
            prefixed.clone().any(|prefix| word.starts_with(prefix))
                || rows.is_some_and(|(_, words)| listed(words, word))
        }
        (_, "mbarrier" | "cp")
            if word.contains("::") || word.ends_with('d') && shape_less(word) =>
        {
            true
        }
        (Some((_, words)), _) => listed(words, word),
        // An instruction without a row has no modifiers except types, or the emulator supports none
        // of its forms.
        (None, _) => false,
    }
}

/// Returns whether `word` is the number of dimensions of a tensor, `1d` to `5d`.
fn shape_less(word: &str) -> bool {
    matches!(word, "1d" | "2d" | "3d" | "4d" | "5d")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_isa_are_told_from_others() {
        assert!(is_instruction("tcgen05") && is_instruction("vset4") && !is_instruction("vset3"));
        assert!(is_directive("reqnctapercluster") && !is_directive("reqcluster"));
        assert!(is_foreign_type("e2m1x2") && !is_foreign_type("f32") && !is_foreign_type("f33"));
        for (instruction, word) in [
            ("add", "rs"),
            ("cvt", "e2m1x2"),
            ("mma", "m16n8k64"),
            ("mma", "kind::mxf8f6f4"),
            ("ld", "L2::cache_hint"),
            ("cp", "5d"),
            ("cp", "mbarrier::complete_tx::bytes"),
            ("setp", "geu"),
        ] {
            assert!(is_modifier(instruction, word), "{instruction}.{word}");
        }
        for (instruction, word) in [
            ("add", "foo"),
            ("mov", "rn"),
            ("mma", "m16n8kx"),
            ("add", "L2::128B"),
            ("shfl", "left"),
        ] {
            assert!(!is_modifier(instruction, word), "{instruction}.{word}");
        }
    }

    #[test]
    fn rows_are_of_instructions_that_there_are() {
        for (names, _) in MODIFIERS {
            for name in names.split_ascii_whitespace() {
                assert!(is_instruction(name), "{name}");
            }
        }
        assert!(FOREIGN.split_ascii_whitespace().all(is_instruction));
    }
}
