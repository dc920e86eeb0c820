use proptest::prelude::*;

use super::*;

fn lookup(variable: Variable<'_>) -> Result<i128, String> {
    match variable {
        Variable::Scalar("n") => Ok(1000),
        Variable::Scalar("zero") => Ok(0),
        Variable::Shape("x", 0) => Ok(32),
        Variable::Shape("x", 1) => Ok(48),
        Variable::Size("x") => Ok(32 * 48),
        Variable::Rank("x") => Ok(2),
        other => Err(format!("unknown {other:?}")),
    }
}

fn value(text: &str) -> Result<i128, ExprError> {
    evaluate(text, lookup)
}

#[test]
fn values() {
    for (text, expected) in [
        ("256", 256),
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("100 / 7 / 2", 7),
        ("ceil_div(n, 256)", 4),
        ("(n + 255) / 256", 4),
        ("ceil_div(-7, 2)", -3),
        ("-7 / 2", -4),
        ("-7 % 2", 1),
        ("7 % -2", -1),
        ("min(n, 3) + max(n, 2000)", 2003),
        ("x.shape[0] * x.shape[1] - x.size", 0),
        ("x.numel / x.ndim", 768),
        ("--5", 5),
        (" max ( 1 , min(2,3) ) ", 2),
        ("2*-3", -6),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn errors_say_where_and_what() {
    for (text, position, words) in [
        ("", 0, "the end"),
        ("1 +", 3, "the end"),
        ("1 2", 2, "unexpected `2`"),
        ("n / zero", 2, "division by zero"),
        ("n % (1 - 1)", 2, "division by zero"),
        ("ceil_div(n, zero)", 0, "division by zero"),
        ("m + 1", 0, "Scalar(\"m\")"),
        ("x.shape[5]", 0, "Shape(\"x\", 5)"),
        ("x.shape[-1]", 8, "dimension"),
        ("x.stride[0]", 2, "shape"),
        ("sqrt(n)", 0, "no function `sqrt`"),
        ("min(1)", 5, "expected `,`"),
        ("(1", 2, "expected `)`"),
        ("n ** 2", 3, "expected a number"),
        ("n; 1", 1, "`;`"),
        ("0x10", 0, "decimal integer"),
        ("1.5", 1, "unexpected `.`"),
        ("é", 0, "`é`"),
        ("170141183460469231731687303715884105727 + 1", 40, "128 bits"),
        ("9999999999999999999999999999999999999999", 0, "127 bits"),
    ] {
        let error = value(text).unwrap_err();
        assert_eq!(error.position, position, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
}

#[test]
fn length_and_depth_are_bounded() {
    let error = value(&"1+".repeat(300)).unwrap_err();
    assert!(error.message.contains("512"), "{error}");
    assert!(error.text.len() <= 160);
    for deep in ["(".repeat(200), "-".repeat(200), "min(1,".repeat(80)] {
        let error = value(&deep).unwrap_err();
        assert!(error.message.contains("64 levels"), "{error}");
    }
    assert_eq!(value(&format!("{}1{}", "(".repeat(60), ")".repeat(60))), Ok(1));
    // Depth counts nesting, not length.
    assert_eq!(value(&format!("1{}", "+(1)".repeat(120))), Ok(121));
}

/// Generates an expression with its value.
fn arithmetic() -> impl Strategy<Value = (String, i128)> {
    let leaf = (0i128..1000).prop_map(|value| (value.to_string(), value));
    leaf.prop_recursive(5, 24, 2, |inner| {
        (inner.clone(), inner, 0..6).prop_filter_map(
            "division by zero",
            |((a, x), (b, y), operation)| {
                Some(match operation {
                    0 => (format!("({a} + {b})"), x.checked_add(y)?),
                    1 => (format!("({a} - {b})"), x.checked_sub(y)?),
                    2 => (format!("({a}*{b})"), x.checked_mul(y)?),
                    3 => (format!("min({a}, {b})"), x.min(y)),
                    4 => (format!("({a} / {b})"), floor(x, y)?),
                    _ => (format!("ceil_div({a},{b})"), -floor(-x, y)?),
                })
            },
        )
    })
}

/// Rounds down by Euclidean division, which rounds down for positive divisors.
fn floor(x: i128, y: i128) -> Option<i128> {
    (y != 0).then(|| if y > 0 { x.div_euclid(y) } else { (-x).div_euclid(-y) })
}

proptest! {
    #[test]
    fn computes_what_the_expression_says((text, expected) in arithmetic()) {
        prop_assume!(text.len() <= MAX_LENGTH);
        prop_assert_eq!(value(&text), Ok(expected));
    }

    #[test]
    fn any_text_gives_a_value_or_an_error_inside_it(
        text in "[n0-9x.shape\\[\\]()+*/%, min-]{0,80}"
    ) {
        if let Err(error) = value(&text) {
            prop_assert!(error.position <= text.len());
        }
    }
}
