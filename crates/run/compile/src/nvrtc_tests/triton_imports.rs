//! Tests of what a Triton source imports: modules that come with it, and packages that are absent.

use super::triton::Case;
use super::*;

#[tokio::test]
async fn modules_that_come_with_a_source_are_imported() {
    let source = "\
import torch, triton
import triton.language as tl
from .common.math import twice, missing, WARPS
from pkg.common import other
import helper

@triton.jit
def k(x, N: tl.constexpr = WARPS[0] + other.X + helper.ONE):
    tl.store(x, twice(tl.load(x)) + N)
";
    let args = vec!["float32".into()];
    let mut kernel = Case { name: "k", source, args, meta: Vec::new(), num_warps: 4 }.request(&[]);
    kernel.source_path = Some("pkg/kernel.py".to_owned());
    let math = "import triton, torch\nfrom . import other\nWARPS = [2, 4]\nbad = torch.rand(3) + 1\n\
                @triton.jit\ndef twice(x):\n    return x * 2\n";
    for (path, text) in [
        ("pkg/common/math.py", math),
        ("pkg/common/other.py", "X = 100\n"),
        ("pkg/helper.py", "ONE = 1\n"),
    ] {
        kernel.files.insert(path.to_owned(), text.to_owned());
    }
    let bench = Bench::new();
    let built = bench.compile(&kernel).await.unwrap_or_else(|error| panic!("{error:?}"));
    let ttir = &built.stages.iter().find(|stage| stage.0 == "ttir").unwrap().1;
    assert!(ttir.contains("2.0") && ttir.contains("1.03"), "103 is a constant: {ttir}");
    let told: Vec<&str> = built.diagnostics.iter().map(|one| one.message.as_str()).collect();
    let [of_module, of_name] = told[..] else { panic!("{told:?}") };
    assert!(of_module.starts_with("pkg/common/math.py, line 4: left out"), "{told:?}");
    assert!(of_name.contains("cannot import name 'missing'"), "{told:?}");
    assert_eq!(built.diagnostics[1].line, Some(3));
    kernel.files.remove("pkg/helper.py");
    let failure = bench.rejected(&kernel).await;
    let expected = "before that, line 4 of pkg/common/math.py failed: NeedsPackage";
    assert!(failure.message.contains("`helper.ONE` needs `helper`"), "{}", failure.message);
    assert!(failure.message.contains(expected), "{}", failure.message);
}

#[tokio::test]
async fn packages_that_are_absent_are_placeholders_for_all_but_values() {
    let source = "\
import yaml, triton
import triton.language as tl
from made_up.utils import libentry, has_triton, shim
from .calc import settings
try:
    import made_up_faster
    FASTER = 1.0
except ImportError:
    FASTER = 0.0

if has_triton() and settings.version >= 3:
    @libentry()
    @triton.jit
    def k(x: yaml.Tensor, num_warps: tl.constexpr, ADD: tl.constexpr = FASTER + 5):
        tl.store(x, tl.load(x) + ADD + num_warps)

@triton.jit
def uses(x):
    tl.store(x, shim.div_rn(tl.load(x), 2.0))

@triton.jit
def calls(x):
    tl.store(x, yaml.div_rn(tl.load(x), 2.0))
";
    let of = |name| {
        let args = vec!["float32".into()];
        let mut kernel = Case { name, source, args, meta: Vec::new(), num_warps: 8 }.request(&[]);
        kernel.metadata.get_or_insert_default().kernel_name = Some(name.to_owned());
        kernel
    };
    let bench = Bench::new();
    let built = bench.compile(&of("k")).await.unwrap_or_else(|error| panic!("{error:?}"));
    let ttir = &built.stages.iter().find(|stage| stage.0 == "ttir").unwrap().1;
    assert!(
        ttir.contains("5.0") && ttir.contains("8.0"),
        "5 and the eight warps are added: {ttir}"
    );
    let told = built.diagnostics.iter().map(|one| (one.line, one.message.as_str()));
    let told = told.collect::<Vec<_>>();
    for (line, absent) in [(1, "`yaml` is not installed here"), (3, "`made_up`"), (4, "`.calc`")] {
        let found = told.iter().any(|(at, text)| *at == Some(line) && text.starts_with(absent));
        assert!(found, "{absent}: {told:?}");
    }
    assert_eq!(told.len(), 3, "the import within `try` failed as its source expects: {told:?}");
    let failure = bench.rejected(&of("uses")).await;
    let expected = "`shim` (made_up.utils.shim) is not installed here: provide the modules";
    assert!(failure.message.contains(expected), "{}", failure.message);
    assert_eq!(failure.diagnostics[0].line, Some(19));
    let failure = bench.rejected(&of("calls")).await;
    assert!(failure.message.contains("`yaml` is not installed here"), "{}", failure.message);
    assert_eq!(failure.diagnostics[0].line, Some(23));
}
