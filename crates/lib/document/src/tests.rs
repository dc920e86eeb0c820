use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    name: String,
    small: u8,
    signed: i64,
    large: u64,
    real: f64,
    single: f32,
    yes: bool,
    letter: char,
    maybe: Option<u32>,
    choice: Kind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    list: Vec<Kind>,
    #[serde(default)]
    map: BTreeMap<String, Pair>,
    #[serde(default)]
    numbered: BTreeMap<u16, bool>,
    pair: (i8, String),
    wrapped: Wrapped,
    unit: (),
    id: uuid::Uuid,
    any: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pair {
    a: u32,
    b: Option<Wrapped>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Wrapped(String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    Held(u64),
    Both(i32, String),
    Fields { width: u8, height: Option<u8> },
    Deep(Box<Tagged>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged {
    None,
    Some { count: u64, rest: Loose },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Loose {
    Number(i64),
    Text(String),
    List(Vec<Loose>),
}

fn loose() -> impl Strategy<Value = Loose> {
    let leaf = prop_oneof![any::<i64>().prop_map(Loose::Number), ".{0,8}".prop_map(Loose::Text)];
    leaf.prop_recursive(3, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Loose::List))
}

fn kind() -> impl Strategy<Value = Kind> {
    let tagged = prop_oneof![
        Just(Tagged::None),
        (any::<u64>(), loose()).prop_map(|(count, rest)| Tagged::Some { count, rest })
    ];
    prop_oneof![
        Just(Kind::Plain),
        any::<u64>().prop_map(Kind::Held),
        (any::<i32>(), ".{0,5}").prop_map(|(a, b)| Kind::Both(a, b)),
        any::<(u8, Option<u8>)>().prop_map(|(width, height)| Kind::Fields { width, height }),
        tagged.prop_map(|it| Kind::Deep(Box::new(it))),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0_u64..6).prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from),
        ".{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn all()(
        (name, small, signed, large, real, single, yes) in
            (".{0,20}", any::<u8>(), any::<i64>(), any::<u64>(), -1e300..1e300, -1e30f32..1e30, any::<bool>()),
        (letter, maybe, choice) in (any::<char>(), any::<Option<u32>>(), kind()),
        list in prop::collection::vec(kind(), 0..4),
        map in prop::collection::btree_map("[a-z0-9 ]{1,6}", any::<(u32, Option<String>)>(), 0..3),
        numbered in prop::collection::btree_map(any::<u16>(), any::<bool>(), 0..3),
        pair in any::<(i8, String)>(),
        (wrapped, id, any) in (".{0,5}", any::<u128>(), value()),
    ) -> All {
        let pair_of = |(a, b): (u32, Option<String>)| Pair { a, b: b.map(Wrapped) };
        All {
            name, small, signed, large, real, single, yes, letter, maybe, choice, list,
            map: map.into_iter().map(|(key, value)| (key, pair_of(value))).collect(),
            numbered, pair, wrapped: Wrapped(wrapped), unit: (),
            id: uuid::Uuid::from_u128(id), any,
        }
    }
}

fn options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.strict_booleans = true;
    options.non_finite_float_policy = serde_saphyr::NonFiniteFloatPolicy::AsString;
    options
}

fn yaml<T: DeserializeOwned>(text: &str) -> Result<T, DocumentError> {
    Document::parse_yaml(text, options)
        .map_err(|unparsed| unparsed.into_error())?
        .read(DocumentFormat::Yaml)
}

proptest! {
    #[test]
    fn all_formats_give_back_what_was_written(first in all()) {
        let text = serde_json::to_vec(&first).unwrap();
        prop_assert_eq!(from_json::<All>(&text).unwrap(), first.clone());
        let again: All = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(&again, &first);
        prop_assert_eq!(from_value::<All>(serde_json::to_value(&first).unwrap()).unwrap(), first.clone());
        for packed in [rmp_serde::to_vec(&first).unwrap(), rmp_serde::to_vec_named(&first).unwrap()] {
            // A list cannot omit fields.
            if !first.list.is_empty() || packed[0] & 0xf0 == 0x80 || packed[0] == 0xde {
                prop_assert_eq!(from_msgpack::<All>(&packed).unwrap(), first.clone());
            }
        }
        let text = std::str::from_utf8(&text).unwrap();
        agree(serde_saphyr::from_str_with_options::<All>(text, options()), yaml(text))?;
    }

    /// After one change in a document, the tree accepts what the parser of the format accepts, with
    /// the same value.
    #[test]
    fn changed_documents_are_read_as_the_formats_own_parsers_read_them(
        first in all(), field in 0_usize..18, change in value(), drop in any::<bool>(),
    ) {
        let Value::Object(mut fields) = serde_json::to_value(&first).unwrap() else {
            panic!("a struct is an object")
        };
        let name = fields.keys().nth(field % fields.len()).unwrap().clone();
        match drop {
            true => drop_field(&mut fields, &name),
            false => *fields.get_mut(&name).unwrap() = change,
        }
        let text = serde_json::to_vec(&fields).unwrap();
        agree(serde_json::from_slice::<All>(&text), from_json(&text))?;
        agree(serde_json::from_slice::<All>(&text), from_value(Value::Object(fields.clone())))?;
        let text = std::str::from_utf8(&text).unwrap();
        if name != "any" && name != "list" {
            agree(serde_saphyr::from_str_with_options::<All>(text, options()), yaml(text))?;
        }
    }
}

fn drop_field(fields: &mut serde_json::Map<String, Value>, name: &str) {
    fields.remove(name);
}

fn agree<T: PartialEq + Debug, E: Debug>(
    typed: Result<T, E>,
    tree: Result<T, DocumentError>,
) -> Result<(), TestCaseError> {
    match (typed, tree) {
        (Ok(typed), Ok(tree)) => prop_assert_eq!(typed, tree),
        (Err(_), Err(_)) => {}
        (typed, tree) => prop_assert!(false, "{typed:?} and {tree:?}"),
    }
    Ok(())
}

fn good() -> Value {
    json!({
        "name": "n", "small": 1, "signed": -1, "large": 2, "real": 1.5, "single": 0.5, "yes": true, "letter": "x",
        "maybe": null, "choice": {"held": 1}, "list": ["plain", {"fields": {"width": 1, "height": null}}], "map": {"a b": {"a": 1, "b": "w"}},
        "numbered": {"3": true}, "pair": [1, "p"], "wrapped": "w", "unit": null,
        "id": "00000000-0000-0000-0000-000000000001", "any": [1, {"x": null}]
    })
}

#[test]
fn errors_have_the_words_of_serde_and_the_path() {
    let cases = [
        (
            "/small",
            json!(300),
            "small",
            "invalid value: integer `300`, expected a whole number from 0 to 255",
        ),
        (
            "/small",
            json!("1"),
            "small",
            "invalid type: string \"1\", expected a whole number from 0 to 255",
        ),
        (
            "/small",
            json!(null),
            "small",
            "invalid type: null, expected a whole number from 0 to 255",
        ),
        (
            "/small",
            json!(1.5),
            "small",
            "invalid type: floating point `1.5`, expected a whole number from 0 to 255",
        ),
        (
            "/list/1/fields/width",
            json!([]),
            "list[1].fields.width",
            "invalid type: sequence, expected a whole number from 0 to 255",
        ),
        ("/list/0", json!(0), "list[0]", "invalid type: integer `0`, expected a text or a mapping"),
        ("/list/0", json!(null), "list[0]", "invalid type: null, expected a text or a mapping"),
        ("/list/0", json!({"0": 0}), "list[0]", "unknown variant `0`"),
        (
            "/small",
            json!(1e300),
            "small",
            "invalid type: floating point `1e300`, expected a whole number from 0 to 255",
        ),
        ("/list/0", json!("plane"), "list[0]", "unknown variant `plane`, expected one of"),
        ("/list/0", json!({"held": 1, "plain": 2}), "list[0]", "map with a single key"),
        (
            "/list/1",
            json!({"plain": 3}),
            "list[1].plain",
            "invalid type: integer `3`, expected null",
        ),
        ("/map/a b/b", json!([1]), "map.a b.b", "invalid type: sequence, expected"),
        ("/map/a b", json!({"b": null}), "map.a b", "missing field `a`"),
        (
            "/numbered",
            json!({"x": true}),
            "numbered.x",
            "invalid type: string \"x\", expected a whole number from 0 to 65535",
        ),
        ("/pair", json!([1]), "pair", "invalid length 1, expected a tuple of size 2"),
        ("/pair", json!([1, "a", 3]), "pair", "invalid length 3"),
    ];
    for (pointer, wrong, path, message) in cases {
        let mut document = good();
        *document.pointer_mut(pointer).unwrap() = wrong;
        for error in [
            from_value::<All>(document.clone()).unwrap_err(),
            from_json::<All>(&serde_json::to_vec(&document).unwrap()).unwrap_err(),
        ] {
            assert_eq!(path_text(&error.path()), path, "{error}");
            assert!(error.message().contains(message), "{error}");
        }
    }
    let mut unknown = good();
    unknown["small_"] = json!(1);
    let error = from_value::<All>(unknown).unwrap_err();
    assert_eq!(path_text(&error.path()), "small_");
    assert!(
        error.message().starts_with("unknown field `small_`, expected one of `name`"),
        "{error}"
    );
}

#[test]
fn what_is_no_document_has_the_path_to_where_it_ends() {
    let error = from_json::<All>(br#"{"list": [1, {"fields": {"width": }}]}"#).unwrap_err();
    assert_eq!(path_text(&error.path()), "list[1].fields.width");
    assert!(error.message().starts_with("expected value"), "{error}");
    assert!(from_json::<u8>(b"1 2").is_err());
    assert!(from_msgpack::<u8>(&[0xc1]).is_err());
    let parsed = Document::parse_yaml("a:\n  b: [1, 2\n", serde_saphyr::Options::default);
    assert_eq!(path_text(&parsed.unwrap_err().path), "a.b[1]");
}

#[test]
fn a_key_that_stands_twice_is_found() {
    #[derive(Debug, Deserialize)]
    struct One {
        #[serde(rename = "a")]
        _a: u8,
    }
    let error = from_json::<One>(br#"{"a": 1, "a": 2}"#).unwrap_err();
    assert!(error.message().contains("duplicate field `a`"), "{error}");
    assert_eq!(path_text(&error.path()), "a");
}

#[test]
fn the_number_of_values_is_bounded() {
    let packed = rmp_serde::to_vec(&vec![vec![1_u8; 9]; 10]).unwrap();
    assert_eq!(from_msgpack_within::<Vec<Vec<u8>>>(101, &packed).unwrap().len(), 10);
    let error = from_msgpack_within::<Vec<Vec<u8>>>(100, &packed).unwrap_err();
    assert_eq!((path_text(&error.path()).as_str(), error.message()), ("[9][8]", "too many values"));
    assert_eq!(from_json_within::<Vec<u8>>(4, b"[1, 2, 3]").unwrap(), [1, 2, 3]);
    assert!(from_json_within::<Vec<u8>>(3, b"[1, 2, 3]").is_err());
}

/// Other processes may send any nesting, and the threads of the server have 2 MiB of stack.
#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let lists = |depth: usize| [vec![0x91; depth], vec![0xc0]].concat();
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let read = move || {
        let nested = |depth| from_msgpack::<Value>(&lists(depth)).is_ok();
        (nested(300), nested(1_000), nested(100_000))
    };
    assert_eq!(thread.spawn(read).unwrap().join().unwrap(), (true, false, false));
}

#[test]
fn long_texts_are_borrowed() {
    let borrowed =
        |node: Document<'_>| matches!(node.value, document::Value::Text(Cow::Borrowed(_)));
    assert!(borrowed(json(b"\"abc\"", 1).unwrap()));
    assert!(borrowed(msgpack(b"\xa3abc", 1).unwrap()));
}

#[test]
fn a_scalar_of_yaml_is_what_is_asked_for() {
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        text: Vec<String>,
        whole: Vec<i64>,
        real: Vec<f64>,
        truth: Vec<bool>,
        maybe: Vec<Option<String>>,
        nothing: Vec<String>,
        empty: BTreeMap<String, u8>,
        keys: BTreeMap<String, u8>,
        any: Vec<Value>,
    }
    let text = r#"
text: [1.10, 0x10, true, n, -5, 1e3, "null", &a 007, *a, é, 7e12345, &b .INF, *b]
whole: [16, 0x10, "5", -3, 0o7]
real: [1, 1.5, .inf, -.inf, "2.5", 1e3]
truth: [true, False, "true"]
maybe: [null, ~, "~", 3]
nothing:
empty: ~
keys: {1: 1, yes: 2, "3": 3, null: 4}
any: [1, 1.5, "1", true, null, x, -.inf, .NaN]
"#;
    let asked: Asked = yaml(text).unwrap();
    assert_eq!(
        asked.text,
        [
            "1.10", "0x10", "true", "n", "-5", "1e3", "null", "007", "007", "é", "7e12345", ".INF",
            ".INF"
        ]
    );
    assert_eq!(asked.whole, [16, 16, 5, -3, 7]);
    assert_eq!(asked.real, [1.0, 1.5, f64::INFINITY, f64::NEG_INFINITY, 2.5, 1000.0]);
    assert_eq!(asked.truth, [true, false, true]);
    assert_eq!(asked.maybe, [None, None, Some("~".to_owned()), Some("3".to_owned())]);
    assert_eq!(asked.nothing, [""; 0]);
    assert!(asked.empty.is_empty());
    assert_eq!(asked.keys.keys().collect::<Vec<_>>(), ["1", "3", "null", "yes"]);
    assert_eq!(
        asked.any,
        json!([1, 1.5, "1", true, null, "x", "-.inf", ".nan"]).as_array().unwrap().as_slice()
    );
}

#[test]
fn errors_in_yaml_have_line_and_column() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Places {
        #[serde(rename = "list")]
        _list: Vec<u8>,
    }
    let at = |text: &str| {
        let error = yaml::<Places>(text).unwrap_err();
        error.place().map(|place| (place.line, place.column))
    };
    assert_eq!(at("list:\n  - 1\n  - two\n"), Some((3, 5)));
    assert_eq!(at("list: []\nlost: 1\n"), Some((2, 1)));
    assert_eq!(at("list: {}\n"), Some((1, 7)));
}
