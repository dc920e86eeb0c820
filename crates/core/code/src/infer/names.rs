//! Common meanings of parameter names. The main type is [`Meaning`].

/// Returns a name in lower case without prefixes and underscores: `d_rowPtr` and `row_ptr` give the
/// same result.
pub(crate) fn plain(name: &str) -> String {
    let lower = name.to_ascii_lowercase().replace('_', "");
    let without = ["d", "num", "nof"].iter().find_map(|prefix| {
        let decorated = name.to_ascii_lowercase().starts_with(&format!("{prefix}_"));
        if decorated { lower.strip_prefix(prefix) } else { None }
    });
    without.filter(|rest| !rest.is_empty()).unwrap_or(&lower).to_owned()
}

/// Meaning of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An extent with this initial value, which may be reduced.
    Extent(u64),
    /// A number that must keep this value.
    Fixed(u64),
}

/// Returns the meaning of an integer parameter. `all` contains the plain names of all integers.
pub(crate) fn integer(name: &str, all: &[String]) -> Meaning {
    use Meaning::{Extent, Fixed};
    let has = |wanted: &[&str]| all.iter().any(|other| wanted.contains(&other.as_str()));
    let name = plain(name);
    let drawn = has(&["h", "w", "height", "width", "hw", "oh", "ow", "spatialsize", "imagesize"]);
    let images = has(&["height", "h", "inh", "imgheight", "hin", "ny"]) && all.len() > 2;
    match name.as_str() {
        "stride" | "strideh" | "stridew" | "dilation" | "dilationh" | "dilationw" | "groups"
        | "group" | "incx" | "incy" | "inc" => Fixed(1),
        "pad" | "padding" | "padh" | "padw" | "padtop" | "padleft" => Fixed(1),
        "offset" | "start" | "begin" | "base" | "shift" | "lo" | "low" | "min" => Fixed(0),
        "radius" | "halo" | "r" | "order" | "ghost" => Fixed(2),
        "bins" | "nbins" | "numbins" | "binscount" | "bincount" | "histsize" | "classes" => {
            Fixed(256)
        }
        "ksize" | "kernelsize" | "kernelwidth" | "kernelheight" | "filtersize" | "filterwidth"
        | "filterheight" | "kernelh" | "kernelw" | "filterh" | "filterw" | "poolh" | "poolw"
        | "masksize" | "maskwidth" | "maskheight" | "kh" | "kw" | "window" | "fs" | "poolsize" => {
            Fixed(3)
        }
        "k" if images => Fixed(3),
        "seed" => Fixed(42),
        "maxiter" | "maxiters" | "maxiterations" | "iter" | "iters" | "iterations" | "steps"
        | "nsteps" => Fixed(16),
        "hi" | "high" | "max" | "maxval" | "levels" => Fixed(256),
        "c" if !drawn && !has(&["channels"]) => Extent(256),
        "c" | "channels" | "inchannels" | "outchannels" | "cin" | "cout" | "ic" | "oc" => Fixed(3),
        "batch" | "batchsize" | "b" | "batches" => Fixed(2),
        "n" if images && has(&["c", "channels", "cin"]) => Fixed(2),
        "heads" | "nheads" | "nhead" | "nh" | "numheads" | "numkvheads" | "kvheads" => Fixed(4),
        "headdim" => Fixed(64),
        "heightcol" | "widthcol" | "pooledheight" | "pooledwidth" | "outheight" | "outwidth"
        | "outputheight" | "outputwidth" | "inheight" | "inwidth" | "inputheight"
        | "inputwidth" | "oh" | "ow" | "hout" | "wout" | "hin" | "win" => Extent(256),
        "m" | "k" | "height" | "width" | "rows" | "cols" | "columns" | "h" | "w" | "nx" | "ny"
        | "nz" | "row" | "col" | "lda" | "ldb" | "ldc" | "dim" | "d" | "hidden" | "hiddensize"
        | "features" | "seqlen" | "t" | "ncols" | "nrows" | "pitch" | "depth" => Extent(256),
        "n" if has(&["m", "k"]) => Extent(256),
        _ => Extent(65_536),
    }
}

/// Returns whether an array of integers with this name contains the row pointers of a sparse
/// matrix.
pub(crate) fn is_row_pointer(name: &str) -> bool {
    let name = plain(name);
    let known = [
        "rowptr",
        "rowptrs",
        "rowoffsets",
        "rowoffset",
        "indptr",
        "rowstart",
        "csrrowptr",
        "offsets",
    ];
    known.iter().any(|known| name.ends_with(known)) || name == "ptr"
}

/// Returns a value for a floating-point parameter.
pub(crate) fn float(name: &str) -> f64 {
    let name = plain(name);
    let has = |part: &str| name.contains(part);
    if has("eps") {
        1e-5
    } else if has("beta") || has("momentum") || has("decay") {
        0.9
    } else if name == "dt"
        || ["timestep", "lr", "learning", "soft", "slope", "negative"].into_iter().any(has)
    {
        0.01
    } else if has("inv") || has("scale") || has("coef") || name == "r" || has("diff") {
        0.125
    } else {
        2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_is_no_part_of_a_name() {
        for (name, expected) in
            [("d_rowPtr", "rowptr"), ("row_ptr", "rowptr"), ("num_bins", "bins"), ("d", "d")]
        {
            assert_eq!(plain(name), expected);
        }
        assert!(is_row_pointer("d_csrRowPtr") && !is_row_pointer("cols"));
        assert_eq!(integer("N", &["n".into(), "m".into(), "k".into()]), Meaning::Extent(256));
        assert_eq!(integer("N", &["n".into()]), Meaning::Extent(65_536));
    }
}
