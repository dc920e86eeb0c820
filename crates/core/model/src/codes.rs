//! Codes that programs compare: enums of known codes that also keep unknown codes.

/// Defines an enum of codes with fixed texts. Its last variant keeps any other text, so that codes
/// of an older or a newer version are read and written unchanged.
macro_rules! codes {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal,)*
            ..
            $(#[$other_doc:meta])* $other:ident($inner:ty),
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $variant_doc])* $variant,)*
            $(#[$other_doc])* $other($inner),
        }

        impl $name {
            /// All codes with a variant.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Returns the text of the code.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::$other(other) => other.as_ref(),
                }
            }
        }

        impl $name {
            /// Returns the meaning of the code as a sentence, or `None` for an unknown code.
            pub fn meaning(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some(concat!($($variant_doc),*).trim()),)*
                    Self::$other(_) => None,
                }
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::$other(other.into()),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }

        /// The schema is a string without a list of values, because later versions may add codes.
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

pub(crate) use codes;

/// Checks an enum that `codes!` defines.
#[cfg(test)]
macro_rules! check_codes {
    ($name:ident) => {{
        let mut names = std::collections::BTreeSet::new();
        for code in $name::ALL {
            let name = code.as_str();
            assert!(names.insert(name), "{name} is there twice");
            let mut spelt = String::new();
            for letter in format!("{code:?}").chars() {
                if letter.is_ascii_uppercase() && !spelt.is_empty() {
                    spelt.push('_');
                }
                spelt.push(letter.to_ascii_lowercase());
            }
            assert_eq!(name, spelt, "the text is the variant's name");
            assert_eq!($name::from(name), *code);
            assert!(code.meaning().is_some_and(|text| text.ends_with('.')), "{name}");
            assert_eq!(code.to_string(), name);
            let json = serde_json::to_value(code).unwrap();
            assert_eq!(json, name);
            assert_eq!(serde_json::from_value::<$name>(json).unwrap(), *code);
        }
        for unknown in ["code_of_2031", "Timeout", ""] {
            assert!(!names.contains(unknown));
            let code: $name = serde_json::from_value(unknown.into()).unwrap();
            assert!(!$name::ALL.contains(&code));
            assert_eq!(serde_json::to_value(&code).unwrap(), unknown, "it is kept as it is");
        }
        let schema = schemars::schema_for!($name);
        assert_eq!(schema.get("type"), Some(&"string".into()));
        assert_eq!(schema.get("enum"), None);
    }};
}

#[cfg(test)]
pub(crate) use check_codes;
