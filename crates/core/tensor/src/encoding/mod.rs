//! Conversion of tensor content from and to the wire: base64, compression, `.npy`. The main
//! functions are [`decode()`] and [`encode()`].

mod decode;
mod encode;
mod npy;

pub use decode::{DecodeError, decode, decode_to_file, decode_to_vec};
pub use encode::{EncodedTensor, encode};
pub use npy::{NpyError, NpyHeader};

#[cfg(test)]
mod tests;
