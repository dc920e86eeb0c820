//! Creates requests for problems in CUDA: the arguments, the declarations that precede every
//! kernel, and the useless candidates that are derived from each reference.

use std::fmt::Write as _;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Map, Value, json};

/// Names of element types: in the corpus, in requests, and in CUDA.
const TYPES: [(&str, &str, &str); 11] = [
    ("f32", "float32", "float"),
    ("f64", "float64", "double"),
    ("f16", "float16", "__half"),
    ("bf16", "bfloat16", "__nv_bfloat16"),
    ("i8", "int8", "signed char"),
    ("u8", "uint8", "unsigned char"),
    ("i16", "int16", "short"),
    ("i32", "int32", "int"),
    ("u32", "uint32", "unsigned int"),
    ("i64", "int64", "long long"),
    ("bool", "bool", "bool"),
];

/// For each useless candidate, its name and the code that replaces the store of `v`. `v` is the
/// correct value of element `i` of `size`.
const VARIANTS: [(&str, &str); 10] = [
    ("zeros", "out[i] = T(0.0f)"),
    ("constant", "out[i] = T(1.0f)"),
    ("plus_one", "out[i] = T(W(v) + W(1.0f))"),
    ("scaled", "out[i] = T(W(v) * W(SCALE))"),
    ("half", "out[i] = T(__half2float(__float2half((float)v)))"),
    ("bfloat16", "out[i] = T(__bfloat162float(__float2bfloat16((float)v)))"),
    ("every_second", "if (i % 2 == 0) out[i] = T(v)"),
    ("second_half_zero", "out[i] = i < size / 2 ? T(v) : T(0.0f)"),
    ("one_element", "out[i] = i == size / 3 ? T(W(v) + W(1.0f)) : T(v)"),
    ("copy", "out[i] = T(copied[i % COPIED_SIZE])"),
];

/// Code that stores the correct value.
pub const RIGHT: &str = "out[i] = T(v)";

struct Tensor {
    name: String,
    role: &'static str,
    kind: &'static (&'static str, &'static str, &'static str),
    shape: Vec<u64>,
    init: Value,
}

impl Tensor {
    fn is_float(&self) -> bool {
        self.kind.0.contains('f')
    }

    fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    fn is_output(&self) -> bool {
        self.role != "input"
    }
}

/// The arguments and the launch of a problem's kernels.
pub struct Signature {
    tensors: Vec<Tensor>,
    /// For each number, its name, its C type and its value.
    scalars: Vec<(String, &'static str, Value)>,
    launch: String,
    copy: Option<String>,
}

impl Signature {
    /// Parses the header lines of a file. Each line is given as its field and the rest of the line.
    pub fn parse(lines: &[(&str, &str)]) -> Result<Self> {
        let mut signature =
            Self { tensors: Vec::new(), scalars: Vec::new(), launch: String::new(), copy: None };
        for &(field, rest) in lines {
            match field {
                "in" => signature.add("input", rest)?,
                "out" => signature.add("output", rest)?,
                "inout" => signature.add("inout", rest)?,
                "int" | "float" => {
                    let (name, value) =
                        rest.split_once(' ').context("a number argument has no value")?;
                    let of_c = if field == "int" { "int" } else { "float" };
                    signature.scalars.push((name.to_owned(), of_c, serde_json::from_str(value)?));
                }
                "launch" => rest.clone_into(&mut signature.launch),
                "copy" => signature.copy = Some(rest.to_owned()),
                _ => bail!("a CUDA problem has no field `{field}`"),
            }
        }
        ensure!(!signature.launch.is_empty(), "`launch` is missing");
        ensure!(signature.tensors.iter().any(Tensor::is_output), "an output is missing");
        Ok(signature)
    }

    /// Parses a tensor such as `x f32[64,256] randn std=2`.
    fn add(&mut self, role: &'static str, text: &str) -> Result<()> {
        let mut words = text.split(' ');
        let name = words.next().context("an argument has no name")?.to_owned();
        let (kind, shape) = words
            .next()
            .and_then(|word| word.strip_suffix(']')?.split_once('['))
            .with_context(|| format!("`{text}` has no type and shape"))?;
        let kind = TYPES.iter().find(|row| row.0 == kind).with_context(|| kind.to_owned())?;
        let shape = shape.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let mut init = Value::Null;
        if let Some(word) = words.next() {
            init = json!({"kind": word, "seed": self.tensors.len() + 1});
            for word in words {
                let (key, value) = word.split_once('=').with_context(|| word.to_owned())?;
                init[key] = serde_json::from_str(value)?;
            }
        }
        ensure!(
            init.is_null() == (role == "output"),
            "`{text}`: inputs need initial content, outputs must have none"
        );
        self.tensors.push(Tensor { name, role, kind, shape, init });
        Ok(())
    }

    /// Returns the useless candidates that apply to this problem: their names and the code of their
    /// stores.
    pub fn variants(&self) -> Vec<(&'static str, &'static str)> {
        let outputs: Vec<&Tensor> = self.tensors.iter().filter(|t| t.is_output()).collect();
        let all = |fits: &dyn Fn(&Tensor) -> bool| outputs.iter().all(|t| fits(t));
        let fits = |name: &str| match name {
            "scaled" => all(&Tensor::is_float),
            "half" | "bfloat16" => all(&|t| t.kind.0 == "f32" || t.kind.0 == "f64"),
            "plus_one" | "one_element" => all(&|t| t.kind.0 != "bool"),
            "every_second" => !all(&|t| t.elements() == 1),
            _ => true,
        };
        VARIANTS.into_iter().filter(|(name, _)| fits(name)).collect()
    }

    /// Returns the complete source of a kernel: the declarations, followed by `body`. `store` is
    /// the code of the macro `STORE`.
    pub fn source(&self, body: &str, store: &str) -> Result<String> {
        let mut text = String::from(include_str!("prelude.cu"));
        let mut parameters = Vec::new();
        for tensor in &self.tensors {
            let Tensor { name, role, kind, .. } = tensor;
            writeln!(text, "#define {name}_SIZE {}", tensor.elements())?;
            let constant = if *role == "input" { "const " } else { "" };
            parameters.push(format!("{constant}{}* {name}", kind.2));
        }
        parameters.extend(self.scalars.iter().map(|(name, kind, _)| format!("{kind} {name}")));
        let first = |fits: &dyn Fn(&&Tensor) -> bool| self.tensors.iter().find(fits);
        let output = first(&|t| t.is_output()).context("no output")?;
        let copied = match &self.copy {
            Some(name) => first(&|t| t.name == *name),
            None => first(&|t| t.role == "input" && t.kind.0 == output.kind.0)
                .or_else(|| first(&|t| t.role == "input")),
        };
        let copied = copied.ok_or_else(|| anyhow!("nothing can be copied"))?;
        let scale = if output.kind.0 == "bf16" { "1.05" } else { "1.005" };
        let work = match output.kind.0 {
            "f64" => "double",
            "f32" | "f16" | "bf16" => "float",
            _ => "long long",
        };
        writeln!(
            text,
            "#define SCALE {scale}
#define COPIED_SIZE {}
#define KERNEL extern \"C\" __global__ void k({})
template <class T, class V, class C>
__device__ inline void store(T* out, int size, int i, V v, const C* copied) {{
    typedef {work} W;
    {store};
}}
#define STORE(OUTPUT, AT, VALUE) store(OUTPUT, OUTPUT##_SIZE, (AT), (VALUE), {})
{body}",
            copied.elements(),
            parameters.join(", "),
            copied.name,
        )?;
        Ok(text)
    }

    /// Returns a request to evaluate a source against the reference.
    pub fn request(&self, source: &str, launch: Option<&str>, reference: &str) -> Result<Value> {
        let mut args = Vec::new();
        let mut expected = Map::new();
        let own = launch_of(&self.launch)?;
        for tensor in &self.tensors {
            let mut spec = json!({"shape": tensor.shape, "dtype": tensor.kind.1});
            if !tensor.init.is_null() {
                spec["init"] = tensor.init.clone();
            }
            args.push(json!({
                "name": tensor.name, "type": "tensor", "role": tensor.role, "tensor_spec": spec
            }));
            if tensor.is_output() {
                let kernel = json!({"kernel_type": "cuda", "source_code": reference,
                    "metadata": {"kernel_name": "k"}, "io": {"args": [], "launch": own}});
                expected.insert(tensor.name.clone(), json!({"kernel": kernel}));
            }
        }
        for (name, kind, value) in &self.scalars {
            args.push(json!({"name": name, "type": kind, "value": value}));
        }
        let launch = launch.map_or_else(|| Ok(own.clone()), launch_of)?;
        Ok(json!({
            "kernel": {
                "kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": "k"},
                "io": {"args": args, "launch": launch}
            },
            "expected": expected,
            "num_trials": super::TRIALS,
            "timeout": super::TIMEOUT_S
        }))
    }
}

/// Parses a launch such as `grid 4 2 block 256`: the dimensions of the grid and of a block. The
/// word `shared` precedes the size of the dynamic shared memory, bytes.
fn launch_of(text: &str) -> Result<Value> {
    let mut launch = json!({});
    let mut place = "";
    let mut numbers = 0;
    for word in text.split_whitespace() {
        if matches!(word, "grid" | "block" | "shared") {
            (place, numbers) = (word, 0);
            continue;
        }
        let number: u64 =
            word.parse().with_context(|| format!("`{text}` is not a valid launch"))?;
        if place == "shared" {
            launch["shared_memory_bytes"] = json!(number);
            continue;
        }
        let axis = ["x", "y", "z"].get(numbers).context("a launch has at most three axes")?;
        launch[place][axis] = json!(number);
        numbers += 1;
    }
    Ok(launch)
}

#[cfg(test)]
mod tests {
    use super::{RIGHT, Signature, launch_of};
    use serde_json::json;

    fn signature(kind: &str) -> Signature {
        let (input, output) = (format!("x {kind}[4,2] randn"), format!("y {kind}[8]"));
        let lines = [("in", &*input), ("out", &*output), ("int", "n 8"), ("launch", "grid 1")];
        Signature::parse(&lines).unwrap_or_else(|error| panic!("{error:#}"))
    }

    #[test]
    fn the_declarations_have_every_argument() {
        let text = signature("f32").source("BODY", RIGHT).unwrap_or_default();
        assert!(text.contains("k(const float* x, float* y, int n)"), "{text}");
        assert!(text.contains("#define x_SIZE 8"), "{text}");
    }

    #[test]
    fn whole_numbers_are_not_rounded_to_half() {
        let names = |kind| signature(kind).variants().into_iter().map(|v| v.0).collect::<Vec<_>>();
        assert!(names("f32").contains(&"half") && names("f32").contains(&"scaled"));
        assert!(!names("i32").contains(&"half") && !names("i32").contains(&"scaled"));
        assert!(!names("f16").contains(&"half") && names("f16").contains(&"scaled"));
    }

    #[test]
    fn a_launch_names_its_axes() {
        let launch = launch_of("grid 4 2 block 64 shared 128").unwrap_or_default();
        let expected =
            json!({"grid": {"x": 4, "y": 2}, "block": {"x": 64}, "shared_memory_bytes": 128});
        assert_eq!(launch, expected);
    }
}
