//! Element types as Rust values: conversion from and to binary64, and dispatch over [`Dtype`]. The
//! main type is [`Element`].

use half::{bf16, f16};

use super::float8::{
    e2m1_from_f32, e2m1_to_f32, e4m3_from_f32, e4m3_to_f32, e5m2_from_f32, e5m2_to_f32,
    e8m0_from_f32, e8m0_to_f32,
};

/// A tensor element held in little-endian bytes.
pub trait Element: Copy + Send + Sync + 'static {
    /// Size of an element, in bytes.
    const SIZE: usize;
    /// Converts a number. Floats are rounded to nearest, ties to even (8- and 16-bit floats via
    /// binary32). Integers are truncated towards zero and saturate; NaN becomes 0.
    fn from_f64(value: f64) -> Self;
    /// Converts an integer exactly, or to the nearest limit of the type if it is out of range.
    fn from_i128(value: i128) -> Self;
    /// Returns the value; 64-bit integers are rounded.
    fn to_f64(self) -> f64;
    /// Reads an element from the first `SIZE` bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Writes the element to the first `SIZE` bytes.
    fn write(self, bytes: &mut [u8]);
    /// Returns decimal text: exact for integers, and for floats the shortest that reads back equal.
    fn text(self) -> String;
}

macro_rules! bytes_by_primitive {
    ($type:ty) => {
        const SIZE: usize = size_of::<$type>();
        #[inline]
        fn read(bytes: &[u8]) -> Self {
            let mut raw = [0; size_of::<$type>()];
            raw.copy_from_slice(&bytes[..size_of::<$type>()]);
            Self::from_le_bytes(raw)
        }
        #[inline]
        fn write(self, bytes: &mut [u8]) {
            bytes[..size_of::<$type>()].copy_from_slice(&self.to_le_bytes());
        }
    };
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Element for $type {
            bytes_by_primitive!($type);
            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline]
            fn from_i128(value: i128) -> Self {
                value.clamp(<$type>::MIN as i128, <$type>::MAX as i128) as $type
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn text(self) -> String {
                self.to_string()
            }
        }
    )*};
}
integer!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! float {
    ($type:ty, $from:expr, $to:expr) => {
        impl Element for $type {
            bytes_by_primitive!($type);
            #[inline]
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            #[inline]
            fn from_i128(value: i128) -> Self {
                $from(value as f64)
            }
            #[inline]
            fn to_f64(self) -> f64 {
                $to(self)
            }
            fn text(self) -> String {
                float_text(self)
            }
        }
    };
}
float!(f64, |x: f64| x, |x: f64| x);
float!(f32, |x: f64| x as f32, f64::from);
float!(f16, |x: f64| f16::from_f32(x as f32), |x: f16| f64::from(x.to_f32()));
float!(bf16, |x: f64| bf16::from_f32(x as f32), |x: bf16| f64::from(x.to_f32()));

/// An E4M3 number, as its 8-bit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct E4m3(u8);

/// An E5M2 number, as its 8-bit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct E5m2(u8);

/// An E8M0 number, as its 8-bit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct E8m0(u8);

/// An E2M1 number, unpacked to one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct E2m1(u8);

/// A signed integer of four bits, unpacked to one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct I4(i8);

/// An unsigned integer of four bits, unpacked to one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct U4(u8);

/// One byte, 0 or 1. Any other value is preserved and reads back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boolean(u8);

macro_rules! one_byte {
    ($type:ty) => {
        const SIZE: usize = 1;
        #[inline]
        fn read(bytes: &[u8]) -> Self {
            Self(bytes[0])
        }
        #[inline]
        fn write(self, bytes: &mut [u8]) {
            bytes[0] = self.0;
        }
    };
}

impl Element for E4m3 {
    one_byte!(Self);
    fn from_f64(value: f64) -> Self {
        Self(e4m3_from_f32(value as f32))
    }
    fn from_i128(value: i128) -> Self {
        Self::from_f64(value as f64)
    }
    fn to_f64(self) -> f64 {
        f64::from(e4m3_to_f32(self.0))
    }
    fn text(self) -> String {
        float_text(e4m3_to_f32(self.0))
    }
}

impl Element for E5m2 {
    one_byte!(Self);
    fn from_f64(value: f64) -> Self {
        Self(e5m2_from_f32(value as f32))
    }
    fn from_i128(value: i128) -> Self {
        Self::from_f64(value as f64)
    }
    fn to_f64(self) -> f64 {
        f64::from(e5m2_to_f32(self.0))
    }
    fn text(self) -> String {
        float_text(e5m2_to_f32(self.0))
    }
}

impl Element for E8m0 {
    one_byte!(Self);
    fn from_f64(value: f64) -> Self {
        Self(e8m0_from_f32(value as f32))
    }
    fn from_i128(value: i128) -> Self {
        Self::from_f64(value as f64)
    }
    fn to_f64(self) -> f64 {
        f64::from(e8m0_to_f32(self.0))
    }
    fn text(self) -> String {
        float_text(e8m0_to_f32(self.0))
    }
}

impl Element for E2m1 {
    one_byte!(Self);
    fn from_f64(value: f64) -> Self {
        Self(e2m1_from_f32(value as f32))
    }
    fn from_i128(value: i128) -> Self {
        Self::from_f64(value as f64)
    }
    fn to_f64(self) -> f64 {
        f64::from(e2m1_to_f32(self.0))
    }
    fn text(self) -> String {
        float_text(e2m1_to_f32(self.0))
    }
}

macro_rules! four_bits {
    ($type:ident, $byte:ty, $lowest:literal, $highest:literal) => {
        impl Element for $type {
            const SIZE: usize = 1;
            fn read(bytes: &[u8]) -> Self {
                Self(bytes[0] as $byte)
            }
            fn write(self, bytes: &mut [u8]) {
                bytes[0] = self.0 as u8;
            }
            fn from_f64(value: f64) -> Self {
                Self((value as $byte).clamp($lowest, $highest))
            }
            fn from_i128(value: i128) -> Self {
                Self(value.clamp($lowest, $highest) as $byte)
            }
            fn to_f64(self) -> f64 {
                f64::from(self.0)
            }
            fn text(self) -> String {
                self.0.to_string()
            }
        }
    };
}
four_bits!(I4, i8, -8, 7);
four_bits!(U4, u8, 0, 15);

impl Element for Boolean {
    one_byte!(Self);
    fn from_f64(value: f64) -> Self {
        Self((value as u8).min(1))
    }
    fn from_i128(value: i128) -> Self {
        Self(value.clamp(0, 1) as u8)
    }
    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }
    fn text(self) -> String {
        match self.0 {
            0 => "false".to_owned(),
            1 => "true".to_owned(),
            other => format!("{other} (not a bool)"),
        }
    }
}

/// Returns the shortest text that reads back equal, with an exponent if plain digits are longer
/// than 18 characters.
fn float_text(value: impl std::fmt::Display + std::fmt::LowerExp) -> String {
    let plain = value.to_string();
    if plain.len() <= 18 { plain } else { format!("{value:e}") }
}

/// Calls a generic function with the Rust type of a [`Dtype`](crate::Dtype): `for_dtype!(dtype,
/// function(arguments))` calls `function::<T>(arguments)`. For a complex type, `T` is the type of
/// the parts. For a packed type, `T` is the type of a number, and the numbers must be
/// [`unpacked`](crate::unpacked).
#[macro_export]
macro_rules! for_dtype {
    ($dtype:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        {
            use $crate::{Dtype as Kind, element as types};
            match $dtype {
                Kind::Float64 | Kind::Complex128 => $function::<f64>($($argument),*),
                Kind::Float32 | Kind::Complex64 => $function::<f32>($($argument),*),
                Kind::Float16 => $function::<half::f16>($($argument),*),
                Kind::Bfloat16 => $function::<half::bf16>($($argument),*),
                Kind::Float8E4m3 => $function::<types::E4m3>($($argument),*),
                Kind::Float8E5m2 => $function::<types::E5m2>($($argument),*),
                Kind::Float8E8m0 => $function::<types::E8m0>($($argument),*),
                Kind::Float4E2m1x2 => $function::<types::E2m1>($($argument),*),
                Kind::Int4x2 => $function::<types::I4>($($argument),*),
                Kind::Uint4x2 => $function::<types::U4>($($argument),*),
                Kind::Int8 => $function::<i8>($($argument),*),
                Kind::Int16 => $function::<i16>($($argument),*),
                Kind::Int32 => $function::<i32>($($argument),*),
                Kind::Int64 => $function::<i64>($($argument),*),
                Kind::Uint8 => $function::<u8>($($argument),*),
                Kind::Uint16 => $function::<u16>($($argument),*),
                Kind::Uint32 => $function::<u32>($($argument),*),
                Kind::Uint64 => $function::<u64>($($argument),*),
                Kind::Bool => $function::<types::Boolean>($($argument),*),
            }
        }
    };
}
pub use for_dtype;
