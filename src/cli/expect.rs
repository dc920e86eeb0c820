//! Expected outputs that the command line gives as expressions: `--expect "a + b"`.

use serde_json::{Map, Value, json};

use super::CliError;
use super::terminal::plain;
use warpgauge_client::ClientError;
use warpgauge_model::FailureCode;
use warpgauge_service::{ExecError, ServiceError};

/// Beginning of the line that computes the expression, in the function of [`source`].
const RESULT: &str = "result = (";

/// Keywords of Python, which cannot be names of parameters.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Adds `expected` to a contract. Each expression becomes a PyTorch function of the kernel's inputs
/// and numbers.
pub(super) fn put(expressions: &[String], fields: &mut Map<String, Value>) -> Result<(), CliError> {
    if expressions.is_empty() {
        return Ok(());
    }
    let args = fields.get("kernel").and_then(|kernel| kernel["io"]["args"].as_array());
    let args = args.map_or(&[][..], Vec::as_slice);
    let outputs = args.iter().filter(|arg| has_role(arg, &["output", "inout"]));
    let outputs = outputs.collect::<Vec<_>>();
    let names = outputs.iter().filter_map(|arg| arg["name"].as_str()).collect::<Vec<_>>();
    let mut expected = Map::new();
    for text in expressions {
        let (name, expression) = match split(text) {
            (Some(name), expression) => (name, expression),
            (None, expression) => match names[..] {
                [only] => (only, expression),
                [] if fields
                    .get("kernel")
                    .is_some_and(|kernel| kernel["kernel_type"] == "program") =>
                {
                    let text = "a whole program has no outputs; name one of its kernels with --kernel-name";
                    return Err(usage(text));
                }
                [] => return Err(usage("the contract lists no output")),
                _ => {
                    let example = format!(
                        "the contract has the outputs {}; write one as NAME=EXPRESSION",
                        names.join(", ")
                    );
                    return Err(usage(&example));
                }
            },
        };
        let Some(output) = outputs.iter().find(|arg| arg["name"] == name) else {
            let known = names.join(", ");
            return Err(usage(&format!("no output is called `{name}`; the outputs: {known}")));
        };
        let source = source(expression, args, &output["tensor_spec"])?;
        let kernel = json!({
            "kernel_type": "torch",
            "source_code": source,
            "metadata": {"function_name": "expected"},
        });
        if expected.insert(name.to_owned(), json!({"kernel": kernel})).is_some() {
            return Err(usage(&format!("`{name}` has two expressions")));
        }
    }
    match fields.entry("expected").or_insert(Value::Null) {
        Value::Object(all) => all.extend(expected),
        other => *other = Value::Object(expected),
    }
    Ok(())
}

fn usage(message: &str) -> CliError {
    CliError::Usage(format!("--expect: {message}"))
}

/// Returns an error in terms of the option, if an expression is the cause.
pub(super) fn explain(error: CliError, expressions: &[String]) -> CliError {
    let lacks_torch = |code: &FailureCode, message: &str| {
        *code == FailureCode::UnmetRequirements && message.contains("`torch`")
    };
    match &error {
        _ if expressions.is_empty() => error,
        CliError::Service(ServiceError::Exec(ExecError::Invalid(problems))) => {
            match problems.iter().find(|one| lacks_torch(&one.code, &one.message)) {
                Some(lacking) => CliError::Unavailable(without_torch(&lacking.message)),
                None => problems
                    .iter()
                    .find_map(|one| {
                        explained(&format!("{}: {}", one.path, one.message), expressions)
                    })
                    .map_or(error, CliError::Usage),
            }
        }
        CliError::Remote(ClientError::Refused { message, problems, .. }) => {
            let unmet = problems.iter().any(|code| code == FailureCode::UnmetRequirements.as_str());
            match unmet && message.contains("`torch`") {
                true => CliError::Unavailable(without_torch(message)),
                false => explained(message, expressions).map_or(error, CliError::Usage),
            }
        }
        _ => error,
    }
}

fn without_torch(message: &str) -> String {
    format!("--expect: PyTorch computes the expression; {message}")
}

/// Returns the expression, the mark below it and the error of a message about a reference. `None` if the
/// message is about something else.
fn explained(message: &str, expressions: &[String]) -> Option<String> {
    let (_, rest) = message.split_once("expected.")?;
    let (output, rest) = rest.split_once(".kernel: ")?;
    let of_output = |text: &&String| split(text).0.is_none_or(|name| name == output);
    let (_, expression) = split(expressions.iter().find(of_output)?);
    let lines = rest.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let reason = lines.last()?;
    let at = lines.iter().rposition(|line| line.trim_start().starts_with(RESULT));
    let mark = at.and_then(|at| {
        let before = lines[at].find(RESULT)? + RESULT.len();
        let mark = lines.get(at + 1)?.get(before..)?;
        // A mark that goes on behind the expression is about the function's own parenthesis.
        let mark = mark.get(..expression.len()).unwrap_or(mark);
        mark.chars().all(|one| matches!(one, ' ' | '^' | '~')).then(|| mark.trim_end())
    });
    let mark = mark.filter(|mark| !mark.is_empty());
    let mark = mark.map_or(String::new(), |mark| format!("\n    {mark}"));
    let shape = if lines.iter().any(|line| line.contains("result.reshape(")) {
        format!("the result does not have the shape of `{output}`: ")
    } else {
        String::new()
    };
    Some(plain(&format!("--expect: {shape}{reason}\n    {expression}{mark}")))
}

fn has_role(arg: &Value, roles: &[&str]) -> bool {
    arg["type"] == "tensor" && arg["role"].as_str().is_some_and(|role| roles.contains(&role))
}

/// Splits `NAME=EXPRESSION`. `==` counts as part of the expression.
fn split(text: &str) -> (Option<&str>, &str) {
    let is_name = |text: &str| {
        text.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && text.chars().all(|one| one.is_alphanumeric() || one == '_')
    };
    match text.split_once('=') {
        Some((name, rest)) if is_name(name.trim()) && !rest.starts_with('=') => {
            (Some(name.trim()), rest.trim())
        }
        _ => (None, text.trim()),
    }
}

/// Returns the source of the function that computes an output.
fn source(expression: &str, args: &[Value], output: &Value) -> Result<String, CliError> {
    if expression.is_empty() || expression.contains(['\n', '\r', '#']) {
        return Err(usage("write one Python expression on one line, without a comment"));
    }
    let is_passed = |arg: &&Value| match arg["type"].as_str() {
        Some("tensor") => !has_role(arg, &["output", "scratch"]),
        Some("int" | "float" | "bool") => true,
        _ => false,
    };
    let passed = args.iter().filter(is_passed).collect::<Vec<_>>();
    let names = passed.iter().filter_map(|arg| arg["name"].as_str()).collect::<Vec<_>>();
    if let Some(keyword) = names.iter().find(|name| KEYWORDS.contains(*name)) {
        return Err(usage(&format!(
            "the argument `{keyword}` has the name of a Python keyword; set a reference in a contract"
        )));
    }
    let mut text = format!("import torch\n\ndef expected({}):\n", names.join(", "));
    let uses_numpy = ["np.", "numpy."].iter().any(|prefix| expression.contains(prefix));
    if uses_numpy {
        text.push_str("    import numpy\n    np = numpy\n");
        for arg in passed.iter().filter(|arg| arg["type"] == "tensor") {
            let name = arg["name"].as_str().unwrap_or_default();
            text.push_str(&format!("    {name} = {name}.cpu().numpy()\n"));
        }
    }
    text.push_str(&format!("    result = ({expression})\n"));
    if uses_numpy {
        text.push_str("    result = torch.from_numpy(np.ascontiguousarray(result))\n");
    }
    text.push_str("    result = torch.as_tensor(result)\n");
    let extents = output["shape"].as_array().map_or(&[][..], Vec::as_slice);
    let shape = extents.iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
    // The output uses the shape of its memory: a product of matrices may be stored as one row.
    if let Some(shape) = shape {
        let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("    result = result.reshape([{extents}])\n"));
    }
    let dtype = output["dtype"].as_str().unwrap_or("float32");
    text.push_str(&format!("    return result.to(torch.{dtype})\n"));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use warpgauge_service::Problem;

    fn contract(outputs: &[&str]) -> Map<String, Value> {
        let spec = json!({"shape": [2, 3], "dtype": "float32"});
        let mut args = vec![
            json!({"name": "a", "type": "tensor", "role": "input", "tensor_spec": spec}),
            json!({"name": "n", "type": "int", "value": 3}),
        ];
        let output = |name: &&str| json!({"name": name, "type": "tensor", "role": "output", "tensor_spec": spec});
        args.extend(outputs.iter().map(output));
        [("kernel".to_owned(), json!({"io": {"args": args}}))].into_iter().collect()
    }

    fn put_into(outputs: &[&str], expressions: &[&str]) -> Result<Value, String> {
        let mut fields = contract(outputs);
        let expressions = expressions.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        put(&expressions, &mut fields).map_err(|error| error.to_string())?;
        Ok(fields["expected"].clone())
    }

    #[test]
    fn an_expression_is_a_function_of_inputs_and_numbers() {
        let expected = put_into(&["c"], &["a * n"]).unwrap();
        assert_eq!(
            expected["c"]["kernel"]["source_code"],
            "import torch\n\ndef expected(a, n):\n    result = (a * n)\n    result = torch.as_tensor(result)\n    \
             result = result.reshape([2, 3])\n    return result.to(torch.float32)\n"
        );
        let expected = put_into(&["c", "d"], &["d=np.sqrt(a)", "c = a == n"]).unwrap();
        let source = |name: &str| expected[name]["kernel"]["source_code"].as_str().unwrap();
        assert!(source("d").contains("a = a.cpu().numpy()"), "{}", source("d"));
        assert!(source("c").contains("result = (a == n)"), "{}", source("c"));
    }

    fn problem(code: FailureCode, path: &str, message: &str) -> CliError {
        let (path, message) = (path.to_owned(), message.to_owned());
        ServiceError::invalid(vec![Problem { path, code, message }]).into()
    }

    #[test]
    fn errors_of_an_expression_name_the_option_and_mark_the_place() {
        let begin = "the reference cannot be used: NameError: name 'zz' is not defined (line 4):   \
                     File \"kernel.py\", line 4, in expected\n";
        let lines =
            "    result = (a + zz)\n                  ^^\nNameError: name 'zz' is not defined";
        let message = format!("{begin}{lines}");
        let due = "--expect: NameError: name 'zz' is not defined\n    a + zz\n        ^^";
        let given = ["c=a + zz".to_owned()];
        let error = problem(FailureCode::ReferenceFailed, "expected.c.kernel", &message);
        let CliError::Usage(text) = explain(error, &given) else { panic!("no usage error") };
        assert_eq!(text, due);
        let refused = CliError::Remote(ClientError::Refused {
            url: "u".to_owned(),
            status: 422,
            message: format!("the request is not valid: expected.c.kernel: {message}"),
            problems: vec!["reference_failed".to_owned()],
            retry_after: None,
        });
        assert_eq!(explain(refused, &given).to_string(), due);

        let shape = "the reference cannot be used: x:   File \"kernel.py\", line 6, in expected\n    \
                     result = result.reshape([8])\n             ^^^^^^^\nRuntimeError: size 5";
        let error = problem(FailureCode::ReferenceFailed, "expected.c.kernel", shape);
        let text = explain(error, &["a[:5]".to_owned()]).to_string();
        let due =
            "--expect: the result does not have the shape of `c`: RuntimeError: size 5\n    a[:5]";
        assert_eq!(text, due);
    }

    #[test]
    fn errors_of_other_parts_stay_as_they_are() {
        let given = ["c=a".to_owned()];
        for (path, message) in [("kernel.io", "wrong"), ("expected.d.kernel", "wrong")] {
            let error = problem(FailureCode::ArgumentType, path, message);
            assert!(!explain(error, &given).render().contains("--expect"), "{path}");
        }
        let error = problem(FailureCode::ReferenceFailed, "expected.c.kernel", "wrong");
        assert!(!explain(error, &[]).render().contains("--expect"));
    }

    #[test]
    fn without_pytorch_the_message_has_the_command_that_installs_it() {
        let message =
            "language `torch` is missing: `warpgauge toolchain install --with torch` gets one";
        let error = problem(FailureCode::UnmetRequirements, "requires", message);
        let error = explain(error, &["a".to_owned()]);
        assert_eq!(error.exit(), Exit::Environment);
        assert!(error.render().starts_with("--expect: PyTorch computes the expression; "));
        assert!(error.render().contains("--with torch"));
    }

    #[test]
    fn what_is_no_expression_of_an_output_is_reported() {
        for (outputs, expressions, part) in [
            (&["c", "d"][..], &["a"][..], "the outputs c, d"),
            (&[], &["a"], "lists no output"),
            (&["c"], &[""], "one Python expression"),
            (&["c"], &["a\nimport os"], "one Python expression"),
            (&["c"], &["a", "c=a"], "`c` has two expressions"),
            (&["c"], &["d=a"], "no output is called `d`; the outputs: c"),
        ] {
            let error = put_into(outputs, expressions).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
